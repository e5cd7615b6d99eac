#pragma once
/// @file
/// What the steps of the ladder have in common: 64 queries meet 64 keys of 64 channels, four warps
/// with 16 queries each.

#include <cstddef>
#include <cstdint>

namespace fa {

/// Sizes of a step.
struct LadderSizes {
    static constexpr int HEAD_DIM = 64, BLOCK_M = 64, BLOCK_N = 64;
    static constexpr int WARPS = 4, THREADS = 32 * WARPS, WARP_ROWS = 16;
    static constexpr int BLOCKS_PER_SM = 3;                 ///< that registers are to allow
    static constexpr int KEY_TILES = BLOCK_N / 8;           ///< products of 8 keys each
    static constexpr int COLUMN_TILES = HEAD_DIM / 8;       ///< products of 8 channels each
    static constexpr int K_STEPS = 64 / 16;                 ///< 16 channels, or 16 keys, a product
    static constexpr std::uint32_t TILE_BYTES = 64 * 128;   ///< of Q, K, V or P
    static constexpr std::uint32_t PIECE_BYTES = 16 * 128;  ///< 16 rows of one
};

}  // namespace fa
