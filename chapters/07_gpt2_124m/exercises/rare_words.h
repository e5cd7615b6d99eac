#pragma once
/// @file
/// Exercise: a log-sum-exp over a large vocabulary that loses no rare word. Fill in and run
///
///     scripts/exercise.sh 7

#include <cmath>
#include <limits>
#include <span>

namespace fa::exercise {

/// Σ e^(logit − max) over the tiles of logits seen so far, and the largest of them.
struct RunningSum {
    float max = -std::numeric_limits<float>::infinity();
    float sum = 0;
};

/// Takes in the logits of one tile, all finite. A tile may hold any number of them.
inline void add(RunningSum& running, std::span<const float> tile) {
    // One word after the other into one fp32 sum. Which words are lost?
    const float old_max = running.max;
    for (const float logit : tile) running.max = std::fmax(running.max, logit);
    running.sum *= std::exp(old_max - running.max);
    for (const float logit : tile) running.sum += std::exp(logit - running.max);
}

/// ln Σ e^logit over all tiles.
inline double log_sum(const RunningSum& running) {
    return static_cast<double>(running.max) + std::log(static_cast<double>(running.sum));
}

}  // namespace fa::exercise
