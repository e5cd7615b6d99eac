#pragma once
/// @file
/// The fused kernels on the CPU executor: for readers without a GPU, for tests, and for counting.

#include "common/attention.h"
#include "common/executor/executor.h"

namespace fa {

/// "executor_tiled" and "executor_register_tiled": the GPU kernels' own source, run on the CPU.
/// Thousands of times slower than a GPU; use small problems.
extern const Implementation EXECUTOR_TILED;
extern const Implementation EXECUTOR_REGISTER_TILED;

/// Runs one of the two with options of the executor and returns what it counted.
/// @param name "executor_tiled" or "executor_register_tiled"
/// @throws executor::Fault if the kernel breaks a rule; std::invalid_argument for another name
executor::Counters run_on_executor(std::string_view name, const AttentionProblem& problem,
                                   const AttentionTensors& tensors,
                                   const executor::Options& options);

}  // namespace fa
