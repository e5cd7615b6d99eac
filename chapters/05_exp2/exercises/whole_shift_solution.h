#pragma once
/// @file
/// Solution of the exercise on a whole-number shift.
///
/// Any number near the maximum will do for the shift, and 2^n with a whole n is exact: a correction
/// then changes the exponents of what was summed up and no digit of it. Rounded up, the shift is
/// less than 1 above the largest score, so that the largest weight is above 1/2 and at most 1, and
/// nothing overflows. A maximum that rises within the same whole number costs no correction at all.
/// −∞ needs no rounding: ceil leaves it.

#include <cmath>
#include <limits>
#include <span>

namespace fa::exercise {

/// A softmax in base 2 under way.
struct State {
    float shift = -std::numeric_limits<float>::infinity();
    float sum = 0.0f;
};

/// Takes in a block of scores.
/// @return the correction
inline float update(State& state, std::span<const float> scores) {
    const float old_shift = state.shift;
    for (const float score : scores) state.shift = std::fmax(state.shift, std::ceil(score));
    const float subtracted = std::isinf(state.shift) ? 0.0f : state.shift;
    const float correction = std::exp2(old_shift - subtracted);
    state.sum *= correction;
    for (const float score : scores) state.sum += std::exp2(score - subtracted);
    return correction;
}

}  // namespace fa::exercise
