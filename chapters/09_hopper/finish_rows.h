#pragma once
/// @file
/// The way out: from sums to O and LSE, and from registers to global memory.

#include "chapters/08_tensor_cores/store_rows.h"
#include "chapters/09_hopper/recompute_rows.h"
#include "chapters/09_hopper/row_reference.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// What a reference times c may be. To round it errs by half a unit in its last place, and all
/// weights of the row with it: from 2^31 on by more than an exponent of fp32 or bf16 holds, from
/// 2^27 on by more than one of fp16 does. And what a rare maximum moves by must not be lost in its
/// last place.
template <class T, Rescale RESCALE>
inline constexpr float LARGEST_SHIFT = RESCALE == Rescale::rare     ? 0x1p23f
                                       : std::is_same_v<T, Float16> ? 0x1p27f
                                                                    : 0x1p31f;

// [finish]
/// Divides the lane's two rows by their sums and stores their LSE. A row that sees no key becomes
/// 0.
/// @param row of the first, counted from at.first_q
/// @return bit h: row h is not right and must be computed again. That is so if something is not
///         finite: a sum that has overflowed, or a NaN, which may belong to a key that the row does
///         not see (0·NaN is NaN, and a product knows no masks); and if its scores are beyond what
///         a reference times c can tell apart.
template <class T, class Position, Rescale RESCALE, int COLUMN_TILES>
__device__ __forceinline__ unsigned finish_rows(const Arguments<T>& a, const Position& at,
                                                const Lane& lane, int row,
                                                const RowReference<RESCALE>& reference,
                                                float (&O)[COLUMN_TILES][4]) {
    float sum[2], nothing[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        sum[h] = row_of_four_sum(reference.l[h]);
        const float inverse = 1.0f / sum[h];
        nothing[h] = sum[h] * 0.0f;  // NaN as soon as one of them is not finite
#pragma unroll
        for (int j = 0; j < COLUMN_TILES; ++j)
#pragma unroll
            for (int e = 2 * h; e < 2 * h + 2; ++e) {
                nothing[h] = fmaf(O[j][e], 0.0f, nothing[h]);
                O[j][e] = sum[h] == 0.0f ? 0.0f : O[j][e] * inverse;
            }
        nothing[h] = row_of_four_sum(nothing[h]);
    }
    unsigned bad = 0;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int query = at.first_q + row + 8 * h;
        const bool right = nothing[h] == 0.0f && sum[h] > 0.0f &&
                           fabsf(reference.shift[h]) < LARGEST_SHIFT<T, RESCALE>;
        if (query < a.len_q && !right && a.visible_keys(query) > 0) bad |= 1u << h;
        if (a.lse && lane.pair == 0 && query < a.len_q)
            a.lse[at.batch * a.lse_stride_batch + at.head_q * a.lse_stride_head + query] =
                sum[h] == 0.0f ? minus_infinity() : (reference.shift[h] + log2f(sum[h])) * LN_2;
    }
    return bad;
}
// [finish]

/// Finishes a warp's rows and stores them straight from its registers.
template <class T, class Position, Rescale RESCALE, int COLUMN_TILES>
__device__ __forceinline__ void finish_and_store(const Arguments<T>& a, const Position& at,
                                                 const Lane& lane, int first_row,
                                                 const RowReference<RESCALE>& reference,
                                                 float (&O)[COLUMN_TILES][4]) {
    const int row = first_row + lane.group;
    const unsigned bad = finish_rows(a, at, lane, row, reference, O);
    const GlobalPointer<T> o = output_of(a, at);
    store_from_registers(a, o, lane, row, a.len_q - at.first_q, O);
    recompute_rows<8 * COLUMN_TILES>(
        a, at, lane, first_row, bad, [&](int r, int channel, const float(&values)[2]) {
            for (int e = 0; e < 2; ++e)
                if (channel + e < a.head_dim)
                    o[r * a.o_strides.token + channel + e] = from_float<T>(values[e]);
        });
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
