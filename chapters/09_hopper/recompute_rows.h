#pragma once
/// @file
/// The safety net under all kernels of this chapter: rows whose result cannot be right are computed
/// again, plainly, from global memory.

#include "chapters/05_exp2/folded_scale.h"
#include "chapters/08_tensor_cores/softmax_rows.h"
#include "chapters/09_hopper/arguments.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// The sum over all lanes.
__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
    for (unsigned distance = 16; distance > 0; distance /= 2) x += shuffle_xor(x, distance);
    return x;
}
/// The largest over all lanes.
__device__ __forceinline__ float warp_maximum(float x) {
#pragma unroll
    for (unsigned distance = 16; distance > 0; distance /= 2)
        x = fmaxf(x, shuffle_xor(x, distance));
    return x;
}

// [plain-row]
/// O and LSE of one query by a whole warp: 32 keys at a time, a key to a lane for the scores, then
/// two channels of every 64 to a lane for the sum. Differences of scores are formed before they are
/// scaled, so no score is too large.
/// @return LSE
template <int HEAD_DIM, class T>
__device__ FA_NOINLINE float plain_row(const Arguments<T>& a, int batch, int head_q, int head_kv,
                                       int query, int lane, float (&o)[HEAD_DIM / 64][2]) {
    const FoldedScale scale(a.scale);
    const GlobalPointer<const T> q =
        a.q + (batch * a.q_strides.batch + head_q * a.q_strides.head + query * a.q_strides.token);
    const GlobalPointer<const T> k = a.k + (batch * a.k_strides.batch + head_kv * a.k_strides.head);
    const GlobalPointer<const T> v = a.v + (batch * a.v_strides.batch + head_kv * a.v_strides.head);
    const auto read = [](GlobalPointer<const T> row, int channel) {
        return to_float(static_cast<T>(row[channel]));
    };
    const auto each_output = [&](auto&& change) {
#pragma unroll
        for (int i = 0; i < HEAD_DIM / 64; ++i)
#pragma unroll
            for (int e = 0; e < 2; ++e)
                if (64 * i + 2 * lane + e < a.head_dim)
                    o[i][e] = change(o[i][e], 64 * i + 2 * lane + e);
    };
    float m = minus_infinity(), l = 0.0f;
    each_output([](float, int) { return 0.0f; });
    const int visible = a.visible_keys(query);
    for (int first = 0; first < visible && l == l; first += 32) {  // a NaN decides the row
        float score = minus_infinity();
        if (first + lane < visible) {
            score = 0.0f;
            for (int channel = 0; channel < a.head_dim; ++channel)
                score = fmaf(read(q, channel) * scale.sign,
                             read(k + (first + lane) * a.k_strides.token, channel), score);
        }
        const float m_new = fmaxf(m, warp_maximum(score));
        const float base = m_new == minus_infinity() ? 0.0f : m_new;
        const float correction = fast_exp2((m - base) * scale.scale_log2);
        const float weight = fast_exp2((score - base) * scale.scale_log2);
        m = m_new;
        l = l * correction + warp_sum(weight);
        each_output([&](float sum, int) { return sum * correction; });
        for (int key = first; key < min(first + 32, visible); ++key) {
            const float key_weight = from_lane(weight, key - first);
            const GlobalPointer<const T> row = v + key * a.v_strides.token;
            each_output(
                [&](float sum, int channel) { return fmaf(key_weight, read(row, channel), sum); });
        }
    }
    each_output([&](float sum, int) { return l == 0.0f ? 0.0f : sum / l; });
    return l == 0.0f ? minus_infinity() : (m * scale.scale_log2 + log2f(l)) * LN_2;
}
// [plain-row]

// [recompute]
/// Computes the rows of a warp again that need it.
/// @param first_row of the warp's 16, counted from at.first_q
/// @param bad       bit h: the lane's row h (finish_rows())
/// @param write     called for such a row with its number, an even channel, and two values
template <int HEAD_DIM, class T, class Position, class Write>
__device__ __forceinline__ void recompute_rows(const Arguments<T>& a, const Position& at,
                                               const Lane& lane, int first_row, unsigned bad,
                                               Write&& write) {
    if (!warp_any(bad != 0)) return;  // as good as always
    warp_barrier();                   // what the lanes have written is about to be replaced
    for (int r = 0; r < 16; ++r) {
        if (!warp_any(lane.group == r % 8 && (bad >> (r / 8) & 1u) != 0)) continue;
        float o[HEAD_DIM / 64][2] = {};
        const int query = at.first_q + first_row + r;
        const float lse =
            plain_row<HEAD_DIM>(a, at.batch, at.head_q, at.head_kv, query, lane.index, o);
#pragma unroll
        for (int i = 0; i < HEAD_DIM / 64; ++i) write(first_row + r, 64 * i + 2 * lane.index, o[i]);
        if (a.lse && lane.index == 0)
            a.lse[at.batch * a.lse_stride_batch + at.head_q * a.lse_stride_head + query] = lse;
    }
}
// [recompute]

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
