#pragma once
/// @file
/// Attention tile by tile with Eigen: S exists only as one tile, and O is put together by the
/// online softmax. Both loop orders of the FlashAttention papers, in plain code.

#include <cstddef>
#include <span>

#include "chapters/03_blocked_attention/schedule.h"
#include "common/attention.h"
#include "common/cost_model.h"

namespace fa {

/// Which loop is outside.
enum class LoopOrder {
    q_outer,  ///< FlashAttention-2 (Dao 2023, Algorithm 1): O of a query block stays on chip
    kv_outer  ///< FlashAttention (Dao et al. 2022, Algorithm 1): K and V blocks stay, O is
              ///< rewritten
};

/// Scratch of blocked_attention(), in bytes: the tiles of each thread and, with K and V outside,
/// the fp32 O, m and l of the head that the thread works on.
std::size_t blocked_workspace_bytes(const AttentionProblem& problem, LoopOrder order,
                                    TileSize sizes, int threads);

/// Runs attention in tiles. Called with tensors that are already checked (see attention()).
/// @param sizes rows of Q, and of K and V, in one tile; any positive sizes are correct
/// @param workspace blocked_workspace_bytes() bytes, 64-byte aligned
/// @param observer told of all loads, stores and tiles if not null; use one thread then
/// @throws std::invalid_argument if a block size is not positive or the workspace is too small
void blocked_attention(const AttentionProblem& problem, const AttentionTensors& tensors,
                       LoopOrder order, TileSize sizes, std::span<std::byte> workspace, int threads,
                       ScheduleObserver* observer = nullptr);

/// "cpu_blocked": Q outside, 64×64 tiles.
extern const Implementation CPU_BLOCKED;

/// "cpu_blocked_kv_outer": K and V outside, 64×64 tiles.
extern const Implementation CPU_BLOCKED_KV_OUTER;

}  // namespace fa
