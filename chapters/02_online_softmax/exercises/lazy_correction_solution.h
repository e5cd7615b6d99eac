#pragma once
/// @file
/// Solution of the exercise on lazy corrections.
///
/// Any number near the maximum will do for the shift. If scores may pass it by 8, a weight is at
/// most e^8 = 2981: harmless in fp32 and bf16, and in fp16, whose largest number is 65504, as long
/// as weights are summed in fp32 (22 of them would overflow). With ordinary scores the shift moves
/// once or twice in a row of thousands of keys, so that a kernel can skip the multiplication of
/// its whole output by the correction nearly always.

#include <algorithm>
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

/// Takes in a block of scores.
inline void update(LazyState& state, std::span<const float> scores) {
    constexpr float MINUS_INFINITY = -std::numeric_limits<float>::infinity();
    float largest = MINUS_INFINITY;
    for (const float score : scores) largest = std::fmax(largest, score);
    if (state.shift == MINUS_INFINITY) {
        state.shift = largest;  // nothing was summed up: nothing to rescale
    } else if (largest > state.shift + SLACK) {
        state.sum *= std::exp(state.shift - largest);
        state.shift = largest;
        ++state.rescalings;
    }
    const float subtracted = state.shift == MINUS_INFINITY ? 0.0f : state.shift;
    for (const float score : scores) state.sum += std::exp(score - subtracted);
}

}  // namespace fa::exercise
