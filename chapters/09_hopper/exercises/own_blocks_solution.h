#pragma once
/// @file
/// Solution of the exercise on the blocks of a warpgroup.
///
/// How many keys a query sees never falls from one query to the next. So the last query of a range
/// that exists decides how many blocks the range needs, and the first one how many of them need no
/// mask. Asked for the tile, that gives the blocks that are loaded; asked for the warpgroup's own
/// 64 queries, those that it multiplies.
///
/// A block that ends exactly with the last key that the first query sees needs no mask; but if the
/// first query sees nothing of the blocks above, it is in this block that the query meets its first
/// key, and what follows may rely on that (the rare maximum takes its reference from the blocks
/// with a mask). Hence the block of the *last visible key*, (visible − 1) / block_n, and not
/// visible / block_n.
///
/// Keys are one stage ahead of values, so there is one stage more than there are blocks; none if
/// there are no blocks.

#include <algorithm>

namespace fa::exercise {

/// A tile of queries.
struct Tile {
    int first_q, warpgroups, rows, block_n, len_q, len_kv;
    bool causal;
};

/// What a warpgroup does, in this order.
struct Work {
    int stages = 0;   ///< to be waited for and handed back
    int skipped = 0;  ///< blocks that none of its own queries sees
    int masked = 0;   ///< blocks with a mask
    int plain = 0;    ///< blocks without
};

/// The work of warpgroup w of a tile.
inline Work work(const Tile& tile, int w) {
    const auto visible = [&](int query) {
        return tile.causal ? std::max(0, query + 1 + tile.len_kv - tile.len_q) : tile.len_kv;
    };
    const auto blocks_of = [&](int first, int rows) {
        const int last = std::min(first + rows, tile.len_q) - 1;
        return first < tile.len_q ? (visible(last) + tile.block_n - 1) / tile.block_n : 0;
    };
    const int blocks = blocks_of(tile.first_q, tile.warpgroups * tile.rows);
    const int first = tile.first_q + w * tile.rows;
    const int own = blocks_of(first, tile.rows);
    const int first_masked = own == 0 ? 0 : (std::max(visible(first), 1) - 1) / tile.block_n;
    return {.stages = blocks == 0 ? 0 : blocks + 1,
            .skipped = blocks - own,
            .masked = own - first_masked,
            .plain = first_masked};
}

}  // namespace fa::exercise
