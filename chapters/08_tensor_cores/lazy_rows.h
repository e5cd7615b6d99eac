#pragma once
/// @file
/// The online softmax with a lazy maximum: exponents are relative to a reference that is moved only
/// when a score lies far above it. What is divided in the end is the same.

#include "chapters/05_exp2/folded_scale.h"
#include "chapters/08_tensor_cores/softmax_rows.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// The state of a lane's rows, two in each of ROW_TILES tiles of 16.
/// @tparam LAZY          false: the reference is the maximum, always
/// @tparam POWERS_OF_TWO false: exp of scaled scores instead of exp2 with a folded scale
template <int ROW_TILES, bool LAZY = true, bool POWERS_OF_TWO = true>
struct LazyRows {
    /// 2^8 is harmless in 16 bits, and in the sum.
    static constexpr float LAZY_EXPONENT = 8.0f;
    static constexpr float LOWEST = -0x1.fffffep+127f;
    static constexpr int ALWAYS = -0x7fffffff - 1;

    FoldedScale scale;
    float m[ROW_TILES][2];       ///< reference: a score, or LOWEST before the first
    float l[ROW_TILES][2] = {};  ///< sum of weights over the lane's own columns
    int limit[ROW_TILES][2];     ///< bits of the score from which on it moves, or ALWAYS
    bool huge = true;            ///< some |c·m| of the warp passes FAR_SHIFT

    __device__ __forceinline__ explicit LazyRows(FoldedScale folded) : scale(folded) {
#pragma unroll
        for (int i = 0; i < ROW_TILES; ++i)
#pragma unroll
            for (int h = 0; h < 2; ++h) m[i][h] = LOWEST, limit[i][h] = ALWAYS;
    }

    // [follow]
    /// Sees to it that no score lies far above its row's reference. The usual answer, "none does",
    /// costs an instruction for two scores and no shuffle: floats that are not all negative compare
    /// like integers, and of those one instruction takes three.
    template <int KEY_TILES, int COLUMN_TILES>
    __device__ __forceinline__ void follow_maximum(const float (&S)[ROW_TILES][KEY_TILES][4],
                                                   float (&O)[ROW_TILES][COLUMN_TILES][4]) {
        if constexpr (LAZY) {
            bool above = false;
#pragma unroll
            for (int i = 0; i < ROW_TILES; ++i)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    int x = ALWAYS, y = ALWAYS;
#pragma unroll
                    for (int j = 0; j < KEY_TILES; j += 2) {
                        x = maximum3(x, float_bits(S[i][j][2 * h]), float_bits(S[i][j][2 * h + 1]));
                        y = maximum3(y, float_bits(S[i][j + 1][2 * h]),
                                     float_bits(S[i][j + 1][2 * h + 1]));
                    }
                    above |= max(x, y) >= limit[i][h];
                }
            if (!warp_any(above)) return;
        }
        raise(S, O);
    }

    /// Row by row, and each row by itself: whether another row of the warp is raised changes no
    /// bit.
    template <int KEY_TILES, int COLUMN_TILES>
    __device__ __forceinline__ void raise(const float (&S)[ROW_TILES][KEY_TILES][4],
                                          float (&O)[ROW_TILES][COLUMN_TILES][4]) {
        const float margin = LAZY ? LAZY_EXPONENT / scale.scale_log2 : 0.0f;
        bool any_huge = false;
#pragma unroll
        for (int i = 0; i < ROW_TILES; ++i)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const float largest = row_of_four_maximum(own_maximum(S[i], h));
                if (largest >= m[i][h] + margin) {
                    const float correction = fast_exp2((m[i][h] - largest) * scale.scale_log2);
                    m[i][h] = largest;
                    l[i][h] *= correction;
#pragma unroll
                    for (int j = 0; j < COLUMN_TILES; ++j) {
                        O[i][j][2 * h] *= correction;
                        O[i][j][2 * h + 1] *= correction;
                    }
                    // A negative limit has no integer that would do: look closely every time.
                    const float next = largest + margin;
                    limit[i][h] = next >= 0.0f ? float_bits(next) : ALWAYS;
                }
                any_huge |= is_huge(m[i][h]);
            }
        huge = warp_any(any_huge);
    }
    // [follow]

    // [weigh]
    /// c·m, to be subtracted from c·S. Where it is so large that rounding it could matter, m leaves
    /// the scores at once, and there is nothing to subtract.
    template <int KEY_TILES>
    __device__ __forceinline__ void shifts(float (&S)[ROW_TILES][KEY_TILES][4],
                                           float (&shift)[ROW_TILES][2]) const {
#pragma unroll
        for (int i = 0; i < ROW_TILES; ++i)
#pragma unroll
            for (int h = 0; h < 2; ++h) shift[i][h] = m[i][h] * scale.scale_log2;
        if (!huge) return;
#pragma unroll
        for (int i = 0; i < ROW_TILES; ++i)
#pragma unroll
            for (int h = 0; h < 2; ++h)
                if (is_huge(m[i][h])) {
                    shift[i][h] = 0.0f;
#pragma unroll
                    for (int j = 0; j < KEY_TILES; ++j)
#pragma unroll
                        for (int e = 2 * h; e < 2 * h + 2; ++e) S[i][j][e] -= m[i][h];
                }
    }

    /// Weights in place of scores for eight keys of a tile of rows, and their sums.
    __device__ __forceinline__ void weigh(float (&s)[4], const float (&shift)[2], float (&sum)[2]) {
        const float c = scale.scale_log2;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            // exp must be told c·ln 2 = |scale|, and multiplies by log2 e itself.
            s[e] = POWERS_OF_TWO ? fast_exp2(fmaf(s[e], c, -shift[e / 2]))
                                 : fast_exp(fmaf(s[e], c * LN_2, -shift[e / 2] * LN_2));
            sum[e / 2] += s[e];
        }
    }
    // [weigh]

  private:
    __device__ __forceinline__ bool is_huge(float reference) const {
        return !(fabsf(reference * scale.scale_log2) < FAR_SHIFT);
    }
};

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
