#pragma once
/// @file
/// Exercise: rescale only when it is worth it. Fill in the function and run
///
///     scripts/exercise.sh 2

#include <cmath>
#include <limits>
#include <span>

namespace fa::exercise {

/// A softmax under way. `shift` is the number that is subtracted from scores, and need not be their
/// maximum; `sum` is Σ exp(score − shift).
struct LazyState {
    float shift = -std::numeric_limits<float>::infinity();
    float sum = 0.0f;
    int rescalings = 0;  ///< how often `sum` was multiplied by a correction
};

/// By how much a score may pass `shift` before the sum is rescaled.
inline constexpr float SLACK = 8.0f;

/// Takes in a block of scores. Moves `shift` to the block's maximum when that is more than SLACK
/// above it, and the first time that there is a score above −∞; leaves it where it is otherwise.
inline void update(LazyState& state, std::span<const float> scores) {
    // As in the chapter, at every new maximum. Make it lazy.
    for (const float score : scores) {
        const float shift = std::fmax(state.shift, score);
        state.sum = state.sum * std::exp(state.shift - shift) + std::exp(score - shift);
        state.shift = shift;
        ++state.rescalings;
    }
}

}  // namespace fa::exercise
