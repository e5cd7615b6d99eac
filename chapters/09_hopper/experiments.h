#pragma once
/// @file
/// What ch09_hopper shows: each function prints one section and adds its checks and results.

#include <cstdint>
#include <vector>

#include "common/program.h"

namespace fa {

/// The flags of the program.
struct HopperOptions {
    AttentionProblem shape{.batch = 4, .heads_q = 12, .heads_kv = 12, .head_dim = 64};
    std::int64_t heads128 = 16;         ///< H of the variants for 128 channels
    std::vector<std::int64_t> lengths;  ///< predicted, and timed on the GPU
    std::int64_t counted_length = 512;  ///< of the runs on the executor
    std::int64_t traced_length = 4096;  ///< of the timeline on the GPU
    double clock_mhz = 1755;            ///< of the GPU that predictions are for
    int orders = 8;                     ///< random orders that the executor tries
    int runs = 20;                      ///< timed replays
    double power_seconds = 0.4;         ///< of more replays, for the mean power; 0: none
};

/// Where TMA puts the elements of a box, where products look for them, and who holds the result.
void show_layout(Program& program);

/// Tile, shared memory and registers of each step and each size of the last kernels.
void show_resources(Program& program, const HopperOptions& options);

/// Which of the sizes should be the quickest for which problem, in bf16, for its own list of
/// batches and lengths, with and without a mask; on a GPU, what each really takes.
void show_sizes(Program& program, const HopperOptions& options);

/// How busy each unit is with a block of keys; times of the steps, predicted and measured.
void show_steps(Program& program, const HopperOptions& options);

/// What each step moves and multiplies, counted; and the same bits in every order of warps.
void show_counts(Program& program, const HopperOptions& options);

/// The last kernel without one of its ideas, or with one that was left out, for 64 and for 128
/// channels.
void show_ablations(Program& program, const HopperOptions& options);

/// What the warpgroups do when, under several schedules.
void show_timeline(Program& program, const HopperOptions& options);

/// Errors against fp64, on the executor and, if there is one, on the GPU.
void show_errors(Program& program, const HopperOptions& options);

/// Whether the GPU can run the kernels: it is wanted, built for, and of compute capability 9.0.
bool hopper_is_here(const Program& program);

}  // namespace fa
