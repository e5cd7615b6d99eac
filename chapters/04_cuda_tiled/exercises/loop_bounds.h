#pragma once
/// @file
/// Exercise: over which tiles of keys does a block of queries loop, and from which on does it need
/// the mask? Fill in the function and run
///
///     scripts/exercise.sh 4

#include <cstdint>

namespace fa::exercise {

/// The two loops of a fused kernel. Tile n holds the keys n · block_n … (n + 1) · block_n − 1, as
/// far as there are keys.
struct Loops {
    std::int64_t unmasked = 0;  ///< tiles 0 … unmasked − 1: full, and wholly seen by every query
    std::int64_t tiles = 0;  ///< tiles unmasked … tiles − 1 are masked; later ones not loaded
};

/// The loops of the block of queries first_q … first_q + block_m − 1, as far as there are queries,
/// under a causal mask aligned bottom-right: query i sees the keys up to i + len_kv − len_q.
inline Loops loops(std::int64_t first_q, std::int64_t block_m, std::int64_t block_n,
                   [[maybe_unused]] std::int64_t len_q, [[maybe_unused]] std::int64_t len_kv) {
    // Right for equal lengths that the tiles divide. Let the lengths be any.
    return {.unmasked = (first_q + 1) / block_n,
            .tiles = (first_q + block_m + block_n - 1) / block_n};
}

}  // namespace fa::exercise
