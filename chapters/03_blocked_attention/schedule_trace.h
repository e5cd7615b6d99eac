#pragma once
/// @file
/// Records what a schedule does, step by step: for the pictures of the tile scan.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chapters/03_blocked_attention/schedule.h"

namespace fa {

/// Keeps every load, store and tile in order. For small problems: a step takes a few dozen bytes.
class ScheduleTrace final : public ScheduleObserver {
  public:
    /// One event. For a tile, `block` is the query block; `bytes` is 0.
    struct Step {
        /// What happened.
        enum class What { load, store, tile } what;
        Operand operand{};
        std::int64_t block = 0, kv_block = 0, bytes = 0;
        TileKind kind{};
    };

    void loaded(Operand operand, std::int64_t block, std::int64_t bytes) override;
    void stored(Operand operand, std::int64_t block, std::int64_t bytes) override;
    void tile(std::int64_t q_block, std::int64_t kv_block, TileKind kind) override;

    const std::vector<Step>& steps() const { return steps_; }

    /// [{"load": "Q", "block": 0, "bytes": 4096}, {"store": …}, {"tile": "full", "q": 0, "kv": 0},
    /// …]
    nlohmann::ordered_json json() const;

    /// The grid of tiles, a line per query block and a column per key block: the turn at which each
    /// was visited, in brackets if it is on the diagonal, a dot if it was skipped.
    std::vector<std::string> drawing() const;

  private:
    std::vector<Step> steps_;
};

/// "full", "diagonal" or "skipped".
std::string_view name_of(TileKind kind);

}  // namespace fa
