#pragma once
/// @file
/// The softmax of chapter 5 on accumulators of mma.sync: 16 rows to a warp, two to a lane, four
/// lanes to a row.

#include "chapters/05_exp2/folded_scale.h"
#include "chapters/08_tensor_cores/arguments.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// The largest of the four lanes of a row.
__device__ __forceinline__ float row_of_four_maximum(float x) {
    x = fmaxf(x, shuffle_xor(x, 1));
    return fmaxf(x, shuffle_xor(x, 2));
}
/// The sum over the four lanes of a row.
__device__ __forceinline__ float row_of_four_sum(float x) {
    x += shuffle_xor(x, 1);
    return x + shuffle_xor(x, 2);
}

/// Of the keys from first_kv on, how many the lane's two rows see; less than 1: none.
/// @param row the first of the two, counted from the first query of the head
template <class T>
__device__ __forceinline__ void visible_from(const Arguments<T>& a, int row, int first_kv,
                                             int (&visible)[2]) {
#pragma unroll
    for (int h = 0; h < 2; ++h)
        visible[h] = a.visible_keys(min(row + 8 * h, a.len_q - 1)) - first_kv;
}

// [mask]
/// −∞ for the scores that a row does not see.
template <int KEY_TILES>
__device__ __forceinline__ void mask_scores(float (&S)[KEY_TILES][4], const Lane& lane,
                                            const int (&visible)[2]) {
#pragma unroll
    for (int j = 0; j < KEY_TILES; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if (8 * j + 2 * lane.pair + e % 2 >= visible[e / 2]) S[j][e] = minus_infinity();
}
// [mask]

/// The lane's largest score in row h.
template <int KEY_TILES>
__device__ __forceinline__ float own_maximum(const float (&S)[KEY_TILES][4], int h) {
    float x = fmaxf(S[0][2 * h], S[0][2 * h + 1]);
#pragma unroll
    for (int j = 1; j < KEY_TILES; ++j) x = fmaxf(fmaxf(x, S[j][2 * h]), S[j][2 * h + 1]);
    return x;
}

/// Up to here c·m may be rounded before it is subtracted. It errs by half a unit in its last place,
/// and all weights of the row with it, which cancels as long as 16 bits can hold such weights: up
/// to 2^±4 below, and of fp16 no more than 2^-24.
inline constexpr float FAR_SHIFT = 0x1p27f;

// [softmax]
/// S becomes P; m, l and O follow. l is the sum over the lane's own columns; the four lanes' sums
/// meet after the last tile.
template <int KEY_TILES, int COLUMN_TILES>
__device__ __forceinline__ void softmax(float (&S)[KEY_TILES][4], FoldedScale scale, float (&m)[2],
                                        float (&l)[2], float (&O)[COLUMN_TILES][4]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const float m_new = fmaxf(m[h], row_of_four_maximum(own_maximum(S, h)));
        // Nothing visible yet: subtract 0, so that exp2(−∞ − m) is 0 and not NaN.
        const float base = m_new == minus_infinity() ? 0.0f : m_new;
        const float row_scale = scale.for_maximum(base);
        const float correction = fast_exp2((m[h] - base) * row_scale);
        float shift = base * row_scale;
        if (!(fabsf(shift) < FAR_SHIFT)) {  // m leaves the scores at once
            shift = 0.0f;
#pragma unroll
            for (int j = 0; j < KEY_TILES; ++j)
#pragma unroll
                for (int e = 2 * h; e < 2 * h + 2; ++e) S[j][e] -= base;
        }
        float sum = 0.0f;
#pragma unroll
        for (int j = 0; j < KEY_TILES; ++j)
#pragma unroll
            for (int e = 2 * h; e < 2 * h + 2; ++e) {
                S[j][e] = fast_exp2(fmaf(S[j][e], row_scale, -shift));
                sum += S[j][e];
            }
        l[h] = l[h] * correction + sum;
        m[h] = m_new;
#pragma unroll
        for (int j = 0; j < COLUMN_TILES; ++j) {
            O[j][2 * h] *= correction;
            O[j][2 * h + 1] *= correction;
        }
    }
}
// [softmax]

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
