#pragma once
/// @file
/// The kernels with delays at their barriers (common/barrier_delay.h), for the hunt. Not on the
/// list: nobody else wants them.

#include <span>

#include "common/attention.h"
#include "common/barrier_delay.h"

namespace fa {

/// A kernel that can be delayed, on the GPU.
struct DelayedKernel {
    Implementation implementation;          ///< for bf16
    int (*warps)(const AttentionProblem&);  ///< of a block, or of a cluster of them
};

/// The last kernels, "cuda_hopper_delayed", and the ladder's steps in their order,
/// "cuda_wgmma_delayed" and so on; then the last ones in pairs of blocks. Only in builds for 90a.
std::span<const DelayedKernel> delayed_on_gpu();

/// Delays what begins on the stream from now on. @throws CudaError
void delay_on_gpu(const BarrierDelay& delay, void* stream);

}  // namespace fa
