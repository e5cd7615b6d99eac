#pragma once
/// @file
/// Bytes between slow memory and the tiles: counted while a schedule runs, and by formula.

#include <array>
#include <cstdint>
#include <string_view>

#include "chapters/03_blocked_attention/schedule.h"
#include "common/attention.h"
#include "common/cost_model.h"

namespace fa {

/// The three ways that this chapter compares.
enum class Schedule { three_pass, kv_outer, q_outer };

/// "three passes", "K/V outside" or "Q outside".
std::string_view name_of(Schedule schedule);

/// Bytes that crossed, by operand.
struct Traffic {
    std::array<std::int64_t, OPERANDS> loaded{};
    std::array<std::int64_t, OPERANDS> stored{};

    /// Both directions of one operand.
    std::int64_t of(Operand operand) const;
    /// Both directions of all operands.
    std::int64_t total() const;
    bool operator==(const Traffic&) const = default;
};

/// Counts what a schedule moves and which tiles it meets.
class TrafficCounter final : public ScheduleObserver {
  public:
    void loaded(Operand operand, std::int64_t block, std::int64_t bytes) override;
    void stored(Operand operand, std::int64_t block, std::int64_t bytes) override;
    void tile(std::int64_t q_block, std::int64_t kv_block, TileKind kind) override;

    /// Tiles of that kind.
    std::int64_t tiles(TileKind kind) const { return tiles_[static_cast<std::size_t>(kind)]; }

    Traffic traffic;

  private:
    std::array<std::int64_t, 3> tiles_{};
};

/// What a schedule moves, by formula: exact, for all of batch and heads, with LSE written. Inputs
/// and O have the size of the problem's element type; S, P, m, l, LSE and an O under way are fp32.
Traffic expected_traffic(const AttentionProblem& problem, Schedule schedule, TileSize sizes);

/// The tiles that a schedule gets for an on-chip memory of M elements. FlashAttention's rule
/// (flash_tiles()) gives the block of the outer loop M/4d rows and the inner one at most d: it is
/// the outer block that decides how often everything else comes by. FlashAttention's outer block is
/// one of keys; with Q outside the same rule makes it one of queries.
TileSize tiles_on_chip(std::int64_t elements, std::int64_t head_dim, Schedule schedule);

/// Runs a schedule on one thread, with a workspace of its own.
/// @param observer told of all loads, stores and tiles if not null
void run_schedule(Schedule schedule, const AttentionProblem& problem,
                  const AttentionTensors& tensors, TileSize sizes, ScheduleObserver* observer);

}  // namespace fa
