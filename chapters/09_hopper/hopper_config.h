#pragma once
/// @file
/// Sizes of the last kernel, and a switch for each idea of the chapter.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "chapters/09_hopper/row_reference.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// When the weighted sum of block n + 1 is issued.
enum class Overlap {
    none,      ///< before the scores of block n, and finished before them
    together,  ///< right before them; the softmax of block n waits for both
    scores,    ///< with them, to run beside the softmax
    softmax    ///< when they are here, to run beside the softmax
};

// [switches]
/// What can be taken out of the kernel, or put in.
struct HopperSwitches {
    Overlap overlap = Overlap::together;
    Rescale rescale = Rescale::rare;
    bool ping_pong = false;      ///< warpgroups take turns at the tensor cores
    bool own_diagonal = true;    ///< a warpgroup skips the blocks that none of its queries sees
    bool persistent = true;      ///< a block works on several tiles; else on one
    bool in_advance = false;     ///< which tiles a block gets is known from the start
    bool late_fetch = true;      ///< the next tile is fetched after the last load of this one
    bool sections = true;        ///< long tiles first, over the heads of a section
    bool store_by_tma = true;    ///< O leaves through shared memory
    bool move_registers = true;  ///< from the warps that load to those that compute
    bool early_launch = true;    ///< a grid begins while the one before it ends
    int polynomial_eighths = 0;  ///< how many of eight exponentials are computed by a polynomial
    int cluster = 1;             ///< blocks that load keys and values together, each for all
    bool traced = false;         ///< clock stamps (trace.h)
};
// [switches]

// [config]
/// Whether weights of a type have the room that a switch asks for: a reference that stays far below
/// the scores leaves large weights, and fp16 ends at 65504.
template <class T>
constexpr bool has_range_for(Rescale rescale) {
    return rescale != Rescale::rare || std::is_same_v<T, BFloat16>;
}

/// Sizes of the kernel.
/// @tparam WARPGROUPS of a block that compute, 64 queries each; 2 to 4 of them
/// @tparam STAGES     blocks of K and V in shared memory
template <int HEAD_DIM_, int WARPGROUPS_, int BLOCK_N_, int STAGES_, int Q_SLOTS_,
          HopperSwitches SWITCHES_ = HopperSwitches{}>
struct HopperConfig {
    static constexpr int HEAD_DIM = HEAD_DIM_, WARPGROUPS = WARPGROUPS_, BLOCK_N = BLOCK_N_;
    static constexpr int STAGES = STAGES_, Q_SLOTS = Q_SLOTS_, CLUSTER = SWITCHES_.cluster;
    static constexpr int BLOCK_M = 64 * WARPGROUPS * CLUSTER;  ///< a tile is a cluster's
    static constexpr int THREADS = 128 * (WARPGROUPS + 1);
    static constexpr int KEY_TILES = BLOCK_N / 8, COLUMN_TILES = HEAD_DIM / 8;
    static constexpr HopperSwitches SWITCHES = SWITCHES_;
    static constexpr Rescale RESCALE = SWITCHES.rescale;
    static constexpr bool PERSISTENT = SWITCHES.persistent;
    static constexpr bool FETCHES_TILES = PERSISTENT && !SWITCHES.in_advance;
    /// What a launch of so many threads leaves to each, moved.
    static constexpr int PRODUCER_REGISTERS = WARPGROUPS == 3 ? 32 : 24;
    static constexpr int CONSUMER_REGISTERS = WARPGROUPS == 4 ? 112 : WARPGROUPS == 3 ? 160 : 240;
    static constexpr std::uint32_t Q_TILE_BYTES = 64 * 2 * HEAD_DIM;  ///< of a warpgroup
    static constexpr std::uint32_t Q_BYTES = WARPGROUPS * Q_TILE_BYTES;
    static constexpr std::uint32_t Q_BOX_BYTES = 64 * 128;
    static constexpr std::uint32_t KV_BYTES = BLOCK_N * 2 * HEAD_DIM;
    static constexpr std::uint32_t STAGE_BYTES = 2 * KV_BYTES;
    static constexpr std::uint32_t RING = Q_SLOTS * Q_BYTES;
    static constexpr std::uint32_t BARRIERS = RING + STAGES * STAGE_BYTES;
    static constexpr std::uint32_t TOLD = BARRIERS + 2 * (Q_SLOTS + STAGES) * 8;
    static constexpr std::uint32_t POSITIONS = (TOLD + (CLUSTER > 1 ? Q_SLOTS * 8 : 0) + 15) & ~15u;
    static constexpr std::size_t SHARED_BYTES = POSITIONS + Q_SLOTS * 16;
    static_assert(HEAD_DIM == 64 || HEAD_DIM == 128);
    static_assert(BLOCK_N % 16 == 0 && WARPGROUPS >= 2 && WARPGROUPS <= 4 && STAGES >= 2);
    static_assert(CLUSTER == 1 || (CLUSTER == 2 && BLOCK_N % (8 * CLUSTER) == 0));
    // The polynomial ends at 2^128, and would not tell.
    static_assert(SWITCHES.polynomial_eighths == 0 || RESCALE != Rescale::rare);
};
// [config]

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
