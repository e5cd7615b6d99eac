#pragma once
/// @file
/// What ch04_cuda_tiled shows: each function prints one section and adds its checks and results.

#include <cstdint>

#include "common/program.h"

namespace fa {

/// The flags of the program.
struct KernelOptions {
    AttentionProblem shape{.batch = 4, .heads_q = 12, .heads_kv = 12, .head_dim = 64};
    bool full = false;
    std::int64_t counted_length = 256;  ///< on the executor
    std::int64_t naive_length = 0;      ///< that does not fit
    std::size_t memory_limit = 0;       ///< of the GPU, pretended, in bytes
    int runs = 30;
};

/// Blocks launched, and what each holds: threads, shared memory, registers.
void show_launch(Program& program, const KernelOptions& options);

/// Bytes to and from global memory, by formula and counted by the executor; barriers.
void show_traffic(Program& program, const KernelOptions& options);

/// Bank conflicts in shared memory with and without padding, counted by the executor.
void show_bank_conflicts(Program& program, const KernelOptions& options);

/// Four broken kernels, and what the executor says to them.
void show_faults(Program& program);

/// Errors against fp64, on the executor and, if there is one, on the GPU.
void show_errors(Program& program, const KernelOptions& options);

/// Times predicted for an H200 from the units of a multiprocessor, and measured if a GPU is there.
void show_times(Program& program, const KernelOptions& options);

/// The three kernels where S does not fit, and the one kernel there.
void show_out_of_memory(Program& program, const KernelOptions& options);

}  // namespace fa
