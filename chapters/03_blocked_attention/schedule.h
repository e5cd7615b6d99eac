#pragma once
/// @file
/// What a blocked attention does, in the order in which it does it, for whoever wants to watch: the
/// traffic counter and the trace of the tile scan.

#include <cstdint>
#include <string_view>

namespace fa {

/// What crosses the border between slow memory and the tiles.
enum class Operand { q, k, v, o, state, lse, s, p };
inline constexpr int OPERANDS = 8;

/// "Q", "K", "V", "O", "m,l", "LSE", "S" or "P".
constexpr std::string_view name_of(Operand operand) {
    constexpr std::string_view NAMES[OPERANDS] = {"Q", "K", "V", "O", "m,l", "LSE", "S", "P"};
    return NAMES[static_cast<int>(operand)];
}

/// How the causal mask meets a tile of S.
enum class TileKind {
    full,      ///< every query sees every key: no masking
    diagonal,  ///< some pairs are masked
    skipped    ///< no query sees any key: nothing is loaded or computed
};

/// Is told of every load, store and tile, from the code that performs them. Calls come from one
/// thread if `Launch::threads` is 1, in program order.
class ScheduleObserver {
  public:
    virtual ~ScheduleObserver() = default;
    /// `bytes` of a block of `operand` were read from slow memory into a tile.
    virtual void loaded(Operand operand, std::int64_t block, std::int64_t bytes) = 0;
    /// `bytes` of a block of `operand` were written from a tile to slow memory.
    virtual void stored(Operand operand, std::int64_t block, std::int64_t bytes) = 0;
    /// The tile of S for these two blocks was computed, or skipped.
    virtual void tile(std::int64_t q_block, std::int64_t kv_block, TileKind kind) = 0;
};

}  // namespace fa
