#pragma once
/// @file
/// Softmax in one pass. Two numbers say all there is to know about the scores seen so far: their
/// maximum m and l = Σ exp(score − m). A third, the vector acc = Σ exp(score − m)·v, makes it the
/// attention of one query. Two such states merge into one, and that is all that FlashAttention
/// needs.
///
/// Sources: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018), Algorithm 3
/// and section 3.1 (the merge); Dao et al., "FlashAttention" (2022), section 3.1 (with V).

#include <limits>
#include <span>
#include <vector>

namespace fa {

/// The softmax of the scores seen so far. A new state has seen none.
struct SoftmaxState {
    float max = -std::numeric_limits<float>::infinity();  ///< m
    float sum = 0.0f;                                     ///< l = Σ exp(score − m)

    /// log Σ exp(score) = m + log l; −∞ if no score was above −∞.
    float lse() const;
};

/// The attention of one query over the keys seen so far.
struct AttentionState {
    SoftmaxState softmax;
    std::vector<float> acc;  ///< Σ exp(score − m)·v, [head_dim]

    explicit AttentionState(std::size_t head_dim) : acc(head_dim, 0.0f) {}

    /// acc / l, [head_dim]; zeros if no score was above −∞.
    std::vector<float> output() const;
};

/// Takes in a block of scores and turns it, in place as in every kernel to come, into the weights
/// exp(score − m) with the new m.
/// @return the correction exp(m_old − m_new): what was summed up before must be scaled by it
float update(SoftmaxState& state, std::span<float> scores);

/// As above, with the rows of V that belong to the scores.
/// @param values [scores.size(), head_dim]
/// @throws std::invalid_argument if values is not that large
float update(AttentionState& state, std::span<float> scores, std::span<const float> values);

/// The state of two disjoint sets of scores from the states of each. Associative and commutative,
/// up to rounding; a new state is its neutral element.
SoftmaxState merge(const SoftmaxState& a, const SoftmaxState& b);

/// As above, with V. @throws std::invalid_argument if the head dimensions differ
AttentionState merge(const AttentionState& a, const AttentionState& b);

/// Softmax by its definition, in fp64: one pass for the maximum, one for the sum, one for the
/// output.
struct TwoPassResult {
    double max = 0;
    double sum = 0;
    std::vector<double> output;  ///< [head_dim]
};

/// @param values [scores.size(), head_dim] @param head_dim may be 0: no V
/// @throws std::invalid_argument if values is not that large
TwoPassResult two_passes(std::span<const float> scores, std::span<const float> values,
                         std::size_t head_dim);

}  // namespace fa
