#pragma once
/// @file
/// Solution of the exercise on rare words.
///
/// An fp32 sum that has reached 1 takes in nothing that is not above 2^-24, however often it comes.
/// fp64, with 53 bits, has room for both, so that is what tiles are added in. But a tile may hold
/// a frequent word, too, and a sum over it would be deaf to the rare ones that follow. So only 16
/// words share an fp32 sum: at worst 15 of them, each below 2^-24, are lost beside a large one, for
/// each large one. (The chapter's table sums blocks of 512 in 16 lanes side by side, as a vector
/// unit does: there 31 may be lost.)

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace fa::exercise {

/// Σ e^(logit − max) over the tiles of logits seen so far, and the largest of them.
struct RunningSum {
    float max = -std::numeric_limits<float>::infinity();
    double sum = 0;
};

/// Takes in the logits of one tile, all finite.
inline void add(RunningSum& running, std::span<const float> tile) {
    constexpr std::size_t PIECE = 16;
    const float old_max = running.max;
    for (const float logit : tile) running.max = std::fmax(running.max, logit);
    running.sum *= std::exp(static_cast<double>(old_max) - static_cast<double>(running.max));
    for (std::size_t i = 0; i < tile.size(); i += PIECE) {
        float sum = 0;
        for (const float logit : tile.subspan(i, std::min(PIECE, tile.size() - i)))
            sum += std::exp(logit - running.max);
        running.sum += static_cast<double>(sum);
    }
}

/// ln Σ e^logit over all tiles.
inline double log_sum(const RunningSum& running) {
    return static_cast<double>(running.max) + std::log(running.sum);
}

}  // namespace fa::exercise
