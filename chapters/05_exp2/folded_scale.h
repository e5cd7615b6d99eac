#pragma once
/// @file
/// The constant into which the softmax scale and the change of base are folded, for the GPU's
/// kernel and for the CPU's.

#include <bit>
#include <cstdint>

namespace fa {

/// log2 e. In fp32 it is off by 1.3e-8, relatively.
inline constexpr float LOG2_E = 1.44269504f;
/// ln 2 = 1 / log2 e.
inline constexpr float LN_2 = 0.69314718f;

// [folded-scale]
/// e^(scale·(s − m)) = 2^(c·s' − c·m') with c = |scale|·log2 e and s' = sign(scale)·s. The scores
/// s' = sign·q·k stay unscaled, so the constant meets them in the one multiply-add that subtracts
/// the maximum. The sign goes with Q: the largest s' is to be the largest exponent, and with c < 0
/// the smallest would be.
struct FoldedScale {
    float sign;          ///< −1, 0 or 1; Q is multiplied by it when it is loaded
    float scale_log2;    ///< c. For scale 0, whose scores are all 0, any number will do but 0: a
                         ///< masked score is −∞, and −∞·0 is NaN
    float power_of_two;  ///< the largest power of two that is not above c

    /// @param scale at most 2^126 in magnitude, as the attention interface sees to
    constexpr explicit FoldedScale(float scale)
        : sign(scale > 0.0f ? 1.0f : (scale < 0.0f ? -1.0f : 0.0f)),
          scale_log2(scale == 0.0f ? 1.0f : (scale < 0.0f ? -scale : scale) * LOG2_E),
          power_of_two(
              std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale_log2) & 0x7f800000u)) {}

    /// The constant for a row whose largest score is m: c, unless m is huge.
    ///
    /// c·m is rounded before it is subtracted, and c·s is not: c·s − c·m misses 0 at s = m by up to
    /// half a unit in the last place of c·m. All weights of the row share that error, and it
    /// cancels in O. But from |c·m| = 2^31 on it is more than an exponent can hold. There, scores
    /// that differ at all differ by 2^7 after scaling, so the weights are 1 and 0 with any constant
    /// of about that size; with a power of two the products are exact.
    /// @tparam Real float, or a vector of floats (chapters/03_blocked_attention/simd.h)
    template <class Real>
    constexpr Real for_maximum(Real m) const {
        const Real product = m * scale_log2, zero = {};
        return ((product < 0x1p31f) & (product > -0x1p31f)) ? scale_log2 - zero
                                                            : power_of_two - zero;
    }
};
// [folded-scale]

}  // namespace fa
