#pragma once
/// @file
/// Exercise: one number from several repetitions, one of which went wrong. Fill in the function and
/// run
///
///     scripts/exercise.sh 6

#include <cstdint>
#include <vector>

namespace fa::exercise {

/// One repetition: `calls` calls, one right after the other, timed together.
struct Repetition {
    double seconds = 0;
    std::int64_t calls = 0;
};

/// What a call takes, in seconds: the median of what it took in each repetition. With an even
/// number of repetitions, the mean of the two in the middle.
/// @param repetitions at least one, in any order, each of at least one call
inline double seconds_per_call(const std::vector<Repetition>& repetitions) {
    // The mean. It belongs to the slowest repetition.
    double seconds = 0;
    std::int64_t calls = 0;
    for (const Repetition& repetition : repetitions) {
        seconds += repetition.seconds;
        calls += repetition.calls;
    }
    return seconds / static_cast<double>(calls);
}

}  // namespace fa::exercise
