#pragma once
/// @file
/// Exercise: the tiles of a sliding window. Fill in the function and run
///
///     scripts/exercise.sh 3

#include <cstdint>

#include "chapters/03_blocked_attention/schedule.h"

namespace fa::exercise {

/// A block of queries or of keys: first, first + 1, … first + rows − 1.
struct Rows {
    std::int64_t first, rows;
};

/// What a causal window of `window` >= 1 keys leaves of the tile where these blocks meet: query i
/// sees the keys i − window + 1, … i (itself included; lengths are equal).
/// full: every query of the tile sees every key of it. skipped: no query sees any.
inline TileKind kind_of(const Rows& queries, const Rows& keys,
                        [[maybe_unused]] std::int64_t window) {
    // The causal mask alone, as in the chapter. Add the left edge.
    if (keys.first > queries.first + queries.rows - 1) return TileKind::skipped;
    return keys.first + keys.rows - 1 <= queries.first ? TileKind::full : TileKind::diagonal;
}

}  // namespace fa::exercise
