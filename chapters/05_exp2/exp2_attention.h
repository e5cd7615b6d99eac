#pragma once
/// @file
/// The exp2 kernel on the GPU and on the CPU executor.

#include "chapters/04_cuda_tiled/kernel_resources.h"
#include "common/attention.h"
#include "common/executor/executor.h"

namespace fa {

/// "executor_exp2": the GPU kernel's own source, run on the CPU. There, exp2 is the exact one of
/// the C library, not the GPU's approximation.
extern const Implementation EXECUTOR_EXP2;

/// Runs the kernel on the executor and returns what it counted. @throws executor::Fault
executor::Counters run_exp2_on_executor(const AttentionProblem& problem,
                                        const AttentionTensors& tensors,
                                        const executor::Options& options);

/// "cuda_exp2". Only in builds with CUDA.
extern const Implementation CUDA_EXP2;

/// What "cuda_exp2" needs of a multiprocessor for a problem. Only in builds with CUDA.
/// @throws CudaError
KernelResources exp2_resources(const AttentionProblem& problem);

}  // namespace fa
