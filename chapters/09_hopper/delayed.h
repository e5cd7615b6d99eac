#pragma once
/// @file
/// The kernels with delays at their barriers (common/barrier_delay.h), for the hunt. Not on the
/// list: nobody else wants them.

#include <span>

#include "common/attention.h"
#include "common/barrier_delay.h"

namespace fa {

/// The last kernels and the ladder's steps, delayed, on the GPU: "cuda_hopper_delayed",
/// "cuda_wgmma_delayed" and so on. For bf16. Only in builds for 90a.
std::span<const Implementation> delayed_on_gpu();

/// Delays what is launched on the stream from now on. The last warp of the largest block is number
/// MOST_DELAYED_WARP; a number that a block lacks delays nobody. @throws CudaError
void delay_on_gpu(const BarrierDelay& delay, void* stream);

/// Of the kernels with four warpgroups that compute.
inline constexpr int MOST_DELAYED_WARP = 19;

}  // namespace fa
