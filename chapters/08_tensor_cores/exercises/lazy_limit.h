#pragma once
/// @file
/// Exercise: a lazy maximum that one comparison of integers guards. Fill in the two functions and
/// run
///
///     scripts/exercise.sh 8

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

/// The kernel's quick look, an integer maximum and one comparison: might a score be too far above
/// the reference? (Nothing to fill in.)
inline bool needs_a_look(std::span<const float> scores, int limit) {
    int largest = ALWAYS;
    for (const float score : scores) largest = std::max(largest, std::bit_cast<int>(score));
    return largest >= limit;
}

/// The limit for a reference: needs_a_look() must be true if a score is SLACK or more above it, and
/// should be false otherwise, wherever integers can tell.
inline int limit_above(float reference) {
    return std::bit_cast<int>(reference + SLACK);  // right for which references?
}

/// Takes in a block of scores. If needs_a_look() says so, and only then, compares them with the
/// reference; moves that to the largest if it lies SLACK or more above.
inline void take_in(LazyRow& row, std::span<const float> scores) {
    // As in chapter 2, at every new maximum. Make it lazy.
    float largest = row.reference;
    for (const float score : scores) largest = std::fmax(largest, score);
    row.sum *= std::exp2(row.reference - largest);
    row.reference = largest;
    for (const float score : scores) row.sum += std::exp2(score - row.reference);
}

}  // namespace fa::exercise
