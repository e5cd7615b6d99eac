#pragma once
/// @file
/// Solution of the exercise on the lazy maximum.
///
/// The bits of a float are its sign and then its size, so as integers the floats from 0 on are in
/// order, and all negative ones lie below them, in reverse order. As long as one of the scores is
/// not negative, the integer maximum is the largest score, and a limit from 0 on is reached if and
/// only if a score reaches it. If all are negative, the integer maximum is negative, too, and the
/// limit is not reached, which is right. For a negative limit nothing helps: of −50 and −1 the
/// integer maximum is −50, so that it may miss the score that matters. Then every block is looked
/// at.
///
/// The reference begins as the lowest finite float and not as −∞: exp2(−∞ − reference) is 0 and
/// not NaN, and the first score that is not −∞ needs no rule of its own.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

namespace fa::exercise {

/// By how much a score may pass the reference: weights are at most 2^SLACK.
inline constexpr float SLACK = 8.0f;
/// A limit that the bits of every float reach.
inline constexpr int ALWAYS = std::numeric_limits<int>::min();

/// The softmax of one row under way. Scores are exponents of 2.
struct LazyRow {
    float reference = std::numeric_limits<float>::lowest();  ///< is subtracted from scores
    float sum = 0.0f;                                        ///< Σ exp2(score − reference)
    int limit = ALWAYS;                                      ///< for needs_a_look()
};

/// The kernel's quick look, an integer maximum and one comparison.
inline bool needs_a_look(std::span<const float> scores, int limit) {
    int largest = ALWAYS;
    for (const float score : scores) largest = std::max(largest, std::bit_cast<int>(score));
    return largest >= limit;
}

/// The limit for a reference.
inline int limit_above(float reference) {
    const float next = reference + SLACK;
    return next >= 0.0f ? std::bit_cast<int>(next) : ALWAYS;
}

/// Takes in a block of scores.
inline void take_in(LazyRow& row, std::span<const float> scores) {
    if (needs_a_look(scores, row.limit)) {
        float largest = std::numeric_limits<float>::lowest();
        for (const float score : scores) largest = std::fmax(largest, score);
        if (largest >= row.reference + SLACK) {
            row.sum *= std::exp2(row.reference - largest);
            row.reference = largest;
            row.limit = limit_above(largest);
        }
    }
    for (const float score : scores) row.sum += std::exp2(score - row.reference);
}

}  // namespace fa::exercise
