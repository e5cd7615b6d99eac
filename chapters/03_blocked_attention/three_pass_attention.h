#pragma once
/// @file
/// The naive way in the same tiles and under the same observer as blocked_attention(): S goes out
/// to slow memory, comes back for the softmax, and P goes out and comes back for P·V
/// (FlashAttention, Dao et al. 2022, Algorithm 0). It is here to be counted, not to be fast;
/// chapter 1 has the naive attention that is as good as it can be made.

#include <cstddef>
#include <span>

#include "chapters/03_blocked_attention/schedule.h"
#include "common/attention.h"
#include "common/cost_model.h"

namespace fa {

/// Scratch of three_pass_attention(), in bytes: one set of tiles, one row of S on chip, and S and P
/// of one head in slow memory.
std::size_t three_pass_workspace_bytes(const AttentionProblem& problem, TileSize sizes);

/// Runs naive attention in three passes, head by head, on one thread. Tiles that the causal mask
/// leaves empty are skipped here too.
/// Called with tensors that are already checked (see attention()).
/// @param workspace three_pass_workspace_bytes() bytes, 64-byte aligned
/// @param observer told of all loads, stores and tiles if not null; a row of S or P counts as part
///        of its query block
/// @throws std::invalid_argument if a block size is not positive or the workspace is too small
void three_pass_attention(const AttentionProblem& problem, const AttentionTensors& tensors,
                          TileSize sizes, std::span<std::byte> workspace,
                          ScheduleObserver* observer = nullptr);

}  // namespace fa
