#pragma once
/// @file
/// Solution of the exercise on the loops of a block.
///
/// Both bounds follow from one number, how many keys a query sees, asked for two queries. It never
/// falls from one query to the next, so the *first* query of the block decides which tiles all see
/// wholly (rounded down: a tile that ends beyond its last visible key needs the mask), and the
/// *last* one which tiles any sees (rounded up). The last is the last that exists: a block that
/// hangs over the end must not load keys for queries that are not there. The number is clamped at
/// 0, for with more queries than keys the first queries see none, and C++ rounds negative quotients
/// the other way. It needs no clamp at len_kv: the last query sees len_kv keys, and none sees more.

#include <algorithm>
#include <cstdint>

namespace fa::exercise {

/// The two loops of a fused kernel.
struct Loops {
    std::int64_t unmasked = 0;  ///< tiles without a mask
    std::int64_t tiles = 0;     ///< all tiles that are loaded
};

/// The loops of the block of queries that begins at first_q.
inline Loops loops(std::int64_t first_q, std::int64_t block_m, std::int64_t block_n,
                   std::int64_t len_q, std::int64_t len_kv) {
    const auto visible_keys = [&](std::int64_t query) {
        return std::max<std::int64_t>(0, query + 1 + len_kv - len_q);
    };
    const std::int64_t last_q = std::min(first_q + block_m, len_q) - 1;
    return {.unmasked = visible_keys(first_q) / block_n,
            .tiles = (visible_keys(last_q) + block_n - 1) / block_n};
}

}  // namespace fa::exercise
