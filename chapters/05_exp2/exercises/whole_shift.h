#pragma once
/// @file
/// Exercise: a softmax in base 2 whose corrections are exact. Fill in the function and run
///
///     scripts/exercise.sh 5

#include <cmath>
#include <limits>
#include <span>

namespace fa::exercise {

/// A softmax in base 2 under way. `shift` is a whole number, the least that is not below the
/// largest score so far, or −∞; `sum` is Σ 2^(score − shift).
struct State {
    float shift = -std::numeric_limits<float>::infinity();
    float sum = 0.0f;
};

/// Takes in a block of scores, which are in base 2 already (scale and log2 e folded in).
/// @return the correction 2^(old shift − new shift), by which `sum` was multiplied
inline float update(State& state, std::span<const float> scores) {
    // With the maximum itself, as in the chapter. Round it.
    const float old_shift = state.shift;
    for (const float score : scores) state.shift = std::fmax(state.shift, score);
    const float subtracted = std::isinf(state.shift) ? 0.0f : state.shift;
    const float correction = std::exp2(old_shift - subtracted);
    state.sum *= correction;
    for (const float score : scores) state.sum += std::exp2(score - subtracted);
    return correction;
}

}  // namespace fa::exercise
