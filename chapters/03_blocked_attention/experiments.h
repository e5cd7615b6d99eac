#pragma once
/// @file
/// What this chapter's program shows, one function for each part. Each prints its tables, adds its
/// checks and leaves rows and extras in the results.

#include <cstdint>
#include <vector>

#include "chapters/03_blocked_attention/machine_rates.h"
#include "common/attention.h"
#include "common/cost_model.h"
#include "common/program.h"

namespace fa {

/// The knobs.
struct Options {
    AttentionProblem problem;               ///< of the timed runs; lengths are those below
    std::vector<std::int64_t> lengths;      ///< of the timed runs
    TileSize tiles;                         ///< of the blocked versions
    int threads = 0;                        ///< where many are used
    std::vector<std::int64_t> on_chip_kib;  ///< on-chip memories of the traffic tables, in KiB
    std::int64_t traffic_length = 1024;     ///< tokens of the traffic tables
    double memory_limit = 0;                ///< bytes; timed runs that need more are left out
};

/// The tile scan of both orders, drawn, and as JSON under "traces".
void show_scan(Program& program, const Options& options);

/// Bytes moved: counted, by formula, and against the asymptotic law.
void show_traffic(Program& program, const Options& options);

/// Largest errors against fp64 of the implementations of chapters 1 and 3.
void show_accuracy(Program& program);

/// Scratch memory per thread, by formula and measured; the same bits for any number of threads.
void show_threads(Program& program, const Options& options);

/// Speed of the Eigen version over block sizes.
void show_block_sizes(Program& program);

/// Where the time of one tile goes, in the Eigen version and in the fast one.
void show_tile(Program& program, const MachineRates& rates);

/// Times of the implementations beside what the machine's ceilings predict.
/// @param machine ceilings for one thread, and for many
void show_speed(Program& program, const Options& options, const std::vector<MachineRates>& machine);

}  // namespace fa
