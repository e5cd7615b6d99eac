#pragma once
/// @file
/// What a faster part does for the whole.

#include <limits>

namespace fa {

/// How many times faster a program becomes when a part that takes `share` of its time becomes
/// `speedup` times faster (Amdahl 1967, "Validity of the single processor approach to achieving
/// large scale computing capabilities").
/// @param share in [0, 1]
constexpr double amdahl_speedup(double share, double speedup) {
    return 1 / ((1 - share) + share / speedup);
}

/// The same if the part took no time at all: no attention, however fast, does better.
constexpr double amdahl_limit(double share) {
    return share < 1 ? 1 / (1 - share) : std::numeric_limits<double>::infinity();
}

}  // namespace fa
