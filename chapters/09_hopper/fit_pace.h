#pragma once
/// @file
/// The pace of a size, from measured times.

#include <span>

#include "chapters/09_hopper/hopper_choice.h"

namespace fa {

/// A launch that was timed.
struct TimedLaunch {
    AttentionProblem problem;
    double microseconds;
};

/// The pace whose predictions come closest to what was measured: squares of the logarithms of
/// ratios, where a launch that is off by more than a seventh counts as if by that much, since a
/// model so simple is quite wrong about some. Found by changing one number at a time, from `begin`
/// on; a number that is 0 there stays 0.
/// @param times at least one
TilePace fit_pace(std::span<const TimedLaunch> times, int multiprocessors, const TileKind& kind,
                  const TilePace& begin);

}  // namespace fa
