#pragma once
/// @file
/// Which of several sizes is the quickest for a problem, by a model: how long a tile takes, and how
/// many of them follow one another until all are done.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "common/attention.h"

namespace fa {

// [pace]
/// How fast a kernel goes through its tiles: microseconds on an H200, fitted to measured times
/// (fit_pace.h). Only their ratios decide.
struct TilePace {
    double launch;     ///< of a launch, beside its tiles
    double start;      ///< of a tile: its first loads and its last stores
    double step;       ///< of 64 keys, for each tile at work on the multiprocessor
    double alone = 0;  ///< of 64 keys at least, however few tiles are at work

    /// Of a tile, of so many on its multiprocessor.
    constexpr double tile(double blocks, double together) const {
        return start + blocks * std::max(alone, together * step);
    }
};

/// Tiles as they are handed out.
struct TileSize {
    int rows;        ///< queries
    int at_once;     ///< on a multiprocessor
    int blocks = 1;  ///< of threads that work on one, each on a multiprocessor
};
// [pace]

// [predicted]
/// Microseconds that a launch should take.
/// @return infinity where there are fewer multiprocessors than a tile needs
inline double predicted_microseconds(const AttentionProblem& p, int multiprocessors,
                                     const TileSize& size, const TilePace& pace) {
    const int places = multiprocessors / size.blocks;
    if (places == 0) return std::numeric_limits<double>::infinity();
    const auto heads = static_cast<double>(p.batch * p.heads_q);
    const auto blocks_before = [&](std::int64_t row) {
        return std::ceil(static_cast<double>(p.visible_keys(row)) / 64);
    };
    const std::int64_t whole = p.len_q / size.rows, rest = p.len_q % size.rows;
    const double longest = blocks_before(p.len_q - 1);
    if (p.causal) {
        // Longest first: either the last of all is a short one, or the longest decides. Beside it,
        // others end.
        const double tiles = heads * static_cast<double>(whole + (rest > 0));
        const double mean =
            (blocks_before(std::min<std::int64_t>(size.rows, p.len_q) - 1) + longest) / 2;
        const double together = std::min<double>(size.at_once, std::ceil(tiles / places));
        return pace.launch + std::max(pace.tile(longest, (1 + together) / 2),
                                      tiles / (places * together) * pace.tile(mean, together));
    }
    // Rounds, and in the last one fewer at a time. A tile that is not full takes less.
    constexpr double LITTLE = 0.35;
    const double last =
        rest == 0 ? 0 : std::min(1.0, static_cast<double>(rest) / size.rows + LITTLE);
    const double tiles = heads * (static_cast<double>(whole) + last);
    const double rounds = std::floor(tiles / (places * size.at_once));
    const double left = tiles - rounds * places * size.at_once;
    return pace.launch + rounds * pace.tile(longest, size.at_once) +
           (left > 0 ? pace.tile(longest, std::ceil(left / places)) : 0);
}
// [predicted]

/// A size to choose.
template <class Config_>
struct SizeOption {
    using Config = Config_;
    std::string_view name;
    TilePace pace;

    static constexpr TileSize tile_size() {
        TileSize size{.rows = Config::BLOCK_M, .at_once = 1};
        if constexpr (requires { Config::BLOCKS_PER_SM; }) size.at_once = Config::BLOCKS_PER_SM;
        if constexpr (requires { Config::CLUSTER; }) size.blocks = Config::CLUSTER;
        return size;
    }
    /// Microseconds that a launch with it should take.
    double predicted(const AttentionProblem& p, int multiprocessors) const {
        return predicted_microseconds(p, multiprocessors, tile_size(), pace);
    }
};

/// Calls `use.template operator()<Config>()` with the one that should be the quickest.
template <class Use, class... Config>
void with_quickest(const AttentionProblem& p, int multiprocessors, Use&& use,
                   const SizeOption<Config>&... options) {
    const std::array times{options.predicted(p, multiprocessors)...};
    const auto quickest = std::ranges::min_element(times) - times.begin();
    std::ptrdiff_t i = 0;
    ((i++ == quickest ? use.template operator()<Config>() : void()), ...);
}

}  // namespace fa
