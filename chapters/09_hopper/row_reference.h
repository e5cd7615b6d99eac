#pragma once
/// @file
/// The online softmax where O is on its way while the reference of a row moves: what O must be
/// multiplied by is kept until it has arrived.

#include "chapters/05_exp2/folded_scale.h"
#include "chapters/08_tensor_cores/softmax_rows.h"
#include "chapters/09_hopper/polynomial_exp2.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// When the reference of a row, the number that leaves its exponents, moves.
enum class Rescale {
    always,  ///< it is the maximum of the scores so far
    lazy,    ///< if a score lies more than 8 above it, base 2 (chapter 8)
    rare     ///< after the blocks with a mask only if the sum of weights grows out of hand
};

/// The state of a lane's two rows.
///
/// Scores so large that to round c·m alone may exceed what an exponent holds are not treated here:
/// such rows are recognised in the end and computed again (recompute_rows.h).
template <Rescale RESCALE>
struct RowReference {
    /// 2^8 is harmless in 16 bits, and in the sum.
    static constexpr float LAZY_EXPONENT = RESCALE == Rescale::always ? 0.0f : 8.0f;
    static constexpr int ALWAYS = -0x7fffffff - 1;
    /// As good as −∞ for a base-2 exponent, and finite: below it no score counts (finish_rows.h).
    static constexpr float LOWEST_SHIFT = -0x1p31f;

    FoldedScale scale;
    float shift[2] = {LOWEST_SHIFT, LOWEST_SHIFT};  ///< the reference times c
    float l[2] = {};                                ///< sum over the lane's own columns
    float correction[2] = {1.0f, 1.0f};             ///< what O must be multiplied by, if moved
    int limit[2] = {ALWAYS, ALWAYS};  ///< bits of the score from which on to look closely
    bool moved = false;

    __device__ __forceinline__ explicit RowReference(FoldedScale folded) : scale(folded) {}

    // [follow]
    /// Before the weights: moves references that scores have left behind.
    template <int KEY_TILES>
    __device__ __forceinline__ void follow(const float (&S)[KEY_TILES][4]) {
        if constexpr (RESCALE != Rescale::always) {
            bool above = false;
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                int x = ALWAYS, y = ALWAYS;
#pragma unroll
                for (int j = 0; j < KEY_TILES; j += 2) {
                    x = maximum3(x, float_bits(S[j][2 * h]), float_bits(S[j][2 * h + 1]));
                    y = maximum3(y, float_bits(S[j + 1][2 * h]), float_bits(S[j + 1][2 * h + 1]));
                }
                above |= max(x, y) >= limit[h];
            }
            if (!warp_any(above)) return;
        }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const float largest = row_of_four_maximum(own_maximum(S, h));
            const float reached = largest * scale.scale_log2;
            correction[h] = 1.0f;
            if (reached >= shift[h] + LAZY_EXPONENT) {
                correction[h] = fast_exp2(shift[h] - reached);
                shift[h] = reached;
                l[h] *= correction[h];
                // A negative limit has no integer that would do: look closely every time.
                const float next = largest + LAZY_EXPONENT / scale.scale_log2;
                limit[h] = next >= 0.0f ? float_bits(next) : ALWAYS;
            }
        }
        moved = true;
    }
    // [follow]

    // [weigh]
    /// Weights in place of scores, and their sums.
    /// @tparam EIGHTHS how many of eight weights are computed by a polynomial
    template <int EIGHTHS = 0, int KEY_TILES>
    __device__ __forceinline__ void weigh(float (&S)[KEY_TILES][4]) {
        const float c = scale.scale_log2;
#pragma unroll
        for (int j = 0; j < KEY_TILES; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const float exponent = fmaf(S[j][e], c, -shift[e / 2]);
                const bool by_polynomial = (4 * j + e) * EIGHTHS % 8 + EIGHTHS >= 8;
                S[j][e] = by_polynomial ? polynomial_exp2(exponent) : fast_exp2(exponent);
                l[e / 2] += S[j][e];
            }
    }
    // [weigh]

    // [correct]
    /// After O has arrived: what was added to it so far was relative to the old reference.
    template <int COLUMN_TILES>
    __device__ __forceinline__ void correct(float (&O)[COLUMN_TILES][4]) {
        if (!moved) return;
#pragma unroll
        for (int j = 0; j < COLUMN_TILES; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) O[j][e] *= correction[e / 2];
        moved = false;
    }
    // [correct]

    // [watch]
    /// In place of follow(), after the weights: where a lane's part of a sum has grown beyond 2^20,
    /// brings it back to about 1. The weights at hand are relative to the old reference still, and
    /// so is O until they have been added: correct() is for the next block.
    __device__ __forceinline__ void watch() {
        constexpr float ENOUGH = 0x1p20f;
        if (!warp_any(fmaxf(l[0], l[1]) > ENOUGH)) return;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const float most = row_of_four_maximum(l[h]);
            // Infinity is past helping; the row will be computed again.
            const int exponent = most > ENOUGH ? min((float_bits(most) >> 23) - 127, 126) : 0;
            // What the reference really moves by, which is less where it is large.
            const float next = shift[h] + static_cast<float>(exponent);
            correction[h] = fast_exp2(shift[h] - next);
            l[h] *= correction[h];
            shift[h] = next;
        }
        moved = true;
    }
    // [watch]
};

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
