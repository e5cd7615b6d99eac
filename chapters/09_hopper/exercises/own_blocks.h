#pragma once
/// @file
/// Exercise: what a warpgroup does with each block of keys that its tile is given. Fill in the
/// function and run
///
///     scripts/exercise.sh 9

namespace fa::exercise {

/// A tile: `warpgroups` times `rows` queries from first_q on, as far as there are queries; blocks
/// of block_n keys. Query i sees the first visible(i) keys: len_kv, or under a causal mask, aligned
/// bottom-right, those up to i + len_kv − len_q.
struct Tile {
    int first_q, warpgroups, rows, block_n, len_q, len_kv;
    bool causal;
};

/// What warpgroup w does, in this order. The producer loads the blocks that any query of the tile
/// sees, from the last one down, and puts the keys of block n and the values of block n + 1 into
/// one stage.
struct Work {
    int stages = 0;   ///< to be waited for and handed back, by every warpgroup of the tile
    int skipped = 0;  ///< blocks that none of its own queries sees
    int masked = 0;   ///< then: as few as possible, so that the others need no mask, and that every
                      ///< query of the warpgroup that sees a key at all has met one by now
    int plain = 0;    ///< then: the rest, down to block 0
};

/// The work of warpgroup w of a tile.
inline Work work(const Tile& tile, int w) {
    // Right for equal lengths, a causal mask, and blocks as wide as a warpgroup is high.
    const int blocks = tile.first_q / tile.rows + tile.warpgroups;
    const int skipped = tile.warpgroups - 1 - w;
    return {.stages = blocks + 1, .skipped = skipped, .masked = 1, .plain = blocks - skipped - 1};
}

}  // namespace fa::exercise
