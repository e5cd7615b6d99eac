#pragma once
/// @file
/// What the steps of the ladder have in common: 64 channels, 64 queries to a warpgroup.

#include <cstddef>
#include <cstdint>

namespace fa {

/// Sizes of a step: WARPGROUPS warpgroups that compute, BLOCK_N keys at a time, STAGES blocks of K
/// and V in shared memory.
template <int WARPGROUPS_, int BLOCK_N_, int STAGES_>
struct HopperSizes {
    static constexpr int HEAD_DIM = 64, WARPGROUPS = WARPGROUPS_, BLOCK_N = BLOCK_N_;
    static constexpr int STAGES = STAGES_, BLOCK_M = 64 * WARPGROUPS;
    static constexpr int KEY_TILES = BLOCK_N / 8, COLUMN_TILES = HEAD_DIM / 8;
    static constexpr std::uint32_t Q_TILE_BYTES = 64 * 2 * HEAD_DIM;  ///< of a warpgroup
    static constexpr std::uint32_t Q_BYTES = WARPGROUPS * Q_TILE_BYTES;
    static constexpr std::uint32_t KV_BYTES = BLOCK_N * 2 * HEAD_DIM;  ///< a block of K or of V
    static constexpr std::uint32_t STAGE_BYTES = 2 * KV_BYTES;
    /// Behind the tiles: barriers of 8 bytes.
    static constexpr std::uint32_t BARRIERS = Q_BYTES + STAGES * STAGE_BYTES;
};

}  // namespace fa
