#pragma once
/// @file
/// One row of softmax in two bases, number by number, and the ways in which the change of base goes
/// wrong. Scalar code that mirrors the kernels operation by operation. A score of −∞ stands for a
/// masked key, whatever the scale.

#include <span>
#include <string_view>
#include <vector>

namespace fa {

/// What became of one score.
struct WeightSteps {
    float score;     ///< q·k
    float exponent;  ///< what the exponential is taken of
    float weight;    ///< relative to the row's maximum
};

/// One row's softmax.
struct RowSoftmax {
    float max = 0;        ///< in the row's own units
    float sum = 0;        ///< of the weights
    float lse = 0;        ///< natural logarithm of Σ exp(scale·score)
    float lse_base2 = 0;  ///< the same sum's logarithm to base 2
    std::vector<WeightSteps> keys;

    /// Weight of a key over the sum: its probability. 0 if all keys are masked.
    float probability(std::size_t key) const { return sum == 0 ? 0 : keys[key].weight / sum; }
};

/// As chapter 4 does it: exp(scale·s − m), m the largest scale·s.
RowSoftmax softmax_base_e(std::span<const float> scores, float scale);

/// As chapter 5 does it: 2^(c·s' − c·m), s' = ±s and m the largest s'.
RowSoftmax softmax_base_2(std::span<const float> scores, float scale);

/// A mistake in the change of base.
enum class Fault {
    none,
    sign_in_constant,  ///< c = scale·log2 e, also where it is negative
    zero_constant,     ///< scale 0 gives c = 0
    fused_correction,  ///< correction = 2^(c·m_old − shift), one multiply-add
    one_constant,      ///< the same c for huge maxima
    lse_in_base_2,     ///< c·m + log2 l returned as LSE
    no_log2_e,         ///< exp replaced by exp2, and nothing else
};
/// The fault in words.
std::string_view name_of(Fault fault);

/// What an online softmax over blocks says of a row.
struct OnlineRow {
    float first = 0;  ///< probability of the first key
    float last = 0;   ///< and of the last
    float lse = 0;
};

/// The kernel's recurrence on one row, `block` scores at a time, with a mistake or without.
OnlineRow online_base_2(std::span<const float> scores, float scale, std::size_t block, Fault fault);

/// The same in fp64 and in base e, by definition.
OnlineRow online_reference(std::span<const float> scores, float scale);

}  // namespace fa
