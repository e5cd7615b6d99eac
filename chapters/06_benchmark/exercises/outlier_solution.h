#pragma once
/// @file
/// Solution of the exercise on repetitions.
///
/// What is compared, and hence sorted, is the time of a call: a repetition of many calls takes long
/// and is not slow. Each repetition counts once. However slow one of them was, the median moves by
/// one place in the sorted list at most, and stays among the times of the others; a mean moves
/// without limit. Half of the repetitions must go wrong before the median does.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fa::exercise {

/// One repetition: `calls` calls, timed together.
struct Repetition {
    double seconds = 0;
    std::int64_t calls = 0;
};

/// What a call takes, in seconds: the median over the repetitions.
inline double seconds_per_call(const std::vector<Repetition>& repetitions) {
    std::vector<double> times;
    for (const Repetition& repetition : repetitions)
        times.push_back(repetition.seconds / static_cast<double>(repetition.calls));
    std::sort(times.begin(), times.end());
    const std::size_t n = times.size();
    return n % 2 == 1 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2;
}

}  // namespace fa::exercise
