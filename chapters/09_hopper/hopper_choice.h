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
/// (fit_pace.h) and moved a little where that chose better. Only their ratios decide.
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
struct TileKind {
    int rows;        ///< queries
    int at_once;     ///< on a multiprocessor
    int blocks = 1;  ///< of threads that work on one, each on a multiprocessor
};
// [pace]

// [predicted]
/// Microseconds that a launch should take: no tile takes less than the shortest, all work has to be
/// done, and the longest tile, too.
/// @return infinity where there are fewer multiprocessors than a tile needs
inline double predicted_microseconds(const AttentionProblem& p, int multiprocessors,
                                     const TileKind& kind, const TilePace& pace) {
    const int places = multiprocessors / kind.blocks;
    if (places == 0) return std::numeric_limits<double>::infinity();
    const std::int64_t in_head = (p.len_q + kind.rows - 1) / kind.rows;
    const auto tiles = static_cast<double>(p.batch * p.heads_q * in_head);
    if (tiles == 0) return pace.launch;
    const auto blocks_seen_by = [&](std::int64_t row) {
        return std::ceil(static_cast<double>(p.visible_keys(row)) / 64);
    };
    const double longest = blocks_seen_by(p.len_q - 1);
    const double shortest = blocks_seen_by(std::min<std::int64_t>(kind.rows, p.len_q) - 1);
    // Rounds, and in the last one fewer at a time.
    const double rounds = std::floor(tiles / (places * kind.at_once));
    const double left = tiles - rounds * places * kind.at_once;
    const double in_rounds = rounds * pace.tile(shortest, kind.at_once) +
                             (left > 0 ? pace.tile(shortest, std::ceil(left / places)) : 0);
    // Under a mask tiles differ: the work of all, evenly divided, or the longest, beside which
    // others end.
    const double together = std::min<double>(kind.at_once, std::ceil(tiles / places));
    const double divided =
        tiles / (places * together) * pace.tile((shortest + longest) / 2, together);
    const double alone = pace.tile(longest, (1 + together) / 2);
    return pace.launch + std::max({in_rounds, divided, alone});
}
// [predicted]

/// A size to choose.
template <class Config_>
struct SizeOption {
    using Config = Config_;  ///< HopperConfig or ShortConfig
    std::string_view name;
    TilePace pace;

    static constexpr TileKind tile_kind() {
        TileKind kind{.rows = Config::BLOCK_M, .at_once = 1};
        if constexpr (requires { Config::BLOCKS_PER_SM; }) kind.at_once = Config::BLOCKS_PER_SM;
        if constexpr (requires { Config::CLUSTER; }) kind.blocks = Config::CLUSTER;
        return kind;
    }
    /// Microseconds that a launch with it should take.
    double predicted(const AttentionProblem& p, int multiprocessors) const {
        return predicted_microseconds(p, multiprocessors, tile_kind(), pace);
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
