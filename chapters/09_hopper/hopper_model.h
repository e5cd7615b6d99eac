#pragma once
/// @file
/// How long a step of the ladder should take, from what each unit of a multiprocessor has to do and
/// from which of them can be busy at the same time.

#include <cstdint>
#include <string>
#include <vector>

#include "chapters/09_hopper/row_reference.h"
#include "common/attention.h"

namespace fa {

/// What can be busy at the same time.
enum class Schedule {
    load_too,  ///< nothing: one after the other come a load, products, the softmax
    in_turn,   ///< loads beside the rest; products and softmax one after the other
    shadow,    ///< and the weighted sum beside the next softmax
    together   ///< everything: the busiest unit decides
};

/// A step as the model sees it.
struct ModelledStep {
    std::string name{};
    int warpgroups = 2, block_n = 128, head_dim = 64;
    int blocks_per_sm = 1;
    Schedule schedule = Schedule::together;
    Rescale rescale = Rescale::always;
    bool own_diagonal = false;  ///< each warpgroup stops at its own
    bool persistent = false;    ///< a tile begins while the one before it ends

    int block_m() const { return 64 * warpgroups; }
};

/// Rates of a multiprocessor of compute capability 9.0, each clock, beyond those of
/// chapters/04_cuda_tiled/multiprocessor.h.
struct HopperRates {
    static constexpr double TENSOR_FLOP = 4096;  ///< dense, 16 bits (H100 whitepaper)
    static constexpr double COMPARISONS = 64;    ///< maxima, and conversions to 16 bits
    static constexpr double INSTRUCTIONS = 4;    ///< of a warp: one a scheduler
    static constexpr double SHARED_BYTES = 128;
    /// A load that nothing hides, and assumed: a trip to the L2 cache and back, and its bytes at 64
    /// a clock.
    static constexpr double TRIP_CLOCKS = 600, L2_BYTES = 64;
    /// Assumed, too: beginning and end of a tile, as blocks of 128 keys: queries and the first keys
    /// on their way, the first scores and the last weighted sum with nothing beside them, O stored.
    /// Persistent blocks hide the ways.
    static constexpr double ENDS = 3, PERSISTENT_ENDS = 1;
};

// [clocks]
/// Clocks that each unit is busy with one block of keys, for all warpgroups.
struct UnitClocks {
    double tensor = 0, exponentials = 0, multiply_adds = 0, comparisons = 0, issue = 0, shared = 0;

    /// Of the softmax: its slowest unit.
    double softmax() const;
    /// Of all.
    double busiest() const;
};
/// Counted from the sizes of a step.
UnitClocks unit_clocks(const ModelledStep& step);

/// Clocks from one block of keys to the next, as the schedule has it.
double block_clocks(const ModelledStep& step);
// [clocks]

/// Blocks of keys that the warpgroups of a tile multiply, together, counted per warpgroup.
/// @param first_q the tile's first query
std::int64_t warpgroup_blocks(const ModelledStep& step, const AttentionProblem& problem,
                              std::int64_t first_q);

/// Scores that are computed over scores that the mask lets through.
double causal_waste(const ModelledStep& step, const AttentionProblem& problem);

/// Seconds for a problem: tiles are handed out in the kernels' order to whichever multiprocessor
/// has room.
double predicted_seconds(const ModelledStep& step, const AttentionProblem& problem,
                         double clock_hz);

/// Seconds below which no schedule can get: the busiest unit of every multiprocessor is always
/// busy.
double least_seconds(const ModelledStep& step, const AttentionProblem& problem, double clock_hz);

/// The steps of the ladder.
std::vector<ModelledStep> modelled_steps();
/// "last", the sizes of the last kernels for a problem.
ModelledStep modelled_last(const AttentionProblem& problem);

}  // namespace fa
