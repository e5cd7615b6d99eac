#pragma once
/// @file
/// Solution of the exercise on the sliding window.
///
/// The right edge is the causal mask's, the left edge the same moved by the window. A tile is
/// skipped if even the query that sees furthest in its direction does not reach it: to the right
/// the last query, to the left the first. It is full if even the query that sees least far reaches
/// all of it: to the right the first query, to the left the last. A window narrower than a tile
/// leaves no full tiles at all.

#include <cstdint>

#include "chapters/03_blocked_attention/schedule.h"

namespace fa::exercise {

/// A block of queries or of keys: first, first + 1, … first + rows − 1.
struct Rows {
    std::int64_t first, rows;
};

/// What a causal window leaves of the tile where these blocks meet.
inline TileKind kind_of(const Rows& queries, const Rows& keys, std::int64_t window) {
    const std::int64_t first_query = queries.first, last_query = queries.first + queries.rows - 1;
    const std::int64_t first_key = keys.first, last_key = keys.first + keys.rows - 1;
    if (first_key > last_query || last_key < first_query - window + 1) return TileKind::skipped;
    return last_key <= first_query && first_key >= last_query - window + 1 ? TileKind::full
                                                                           : TileKind::diagonal;
}

}  // namespace fa::exercise
