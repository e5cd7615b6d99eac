#pragma once
/// @file
/// The chapter's last kernels on the GPU.

#include <span>

#include "chapters/04_cuda_tiled/kernel_resources.h"
#include "common/attention.h"

namespace fa {

/// "cuda_hopper". Only in builds for 90a.
extern const Implementation CUDA_HOPPER;

/// A size that "cuda_hopper" chooses, for all problems in bf16 that it can run.
struct HopperSize {
    Implementation implementation;
    KernelResources (*resources)(const AttentionProblem&);  ///< @throws CudaError
};
/// Those for 64 channels, in the order of the options (hopper_host.h), and called as they are. Not
/// on the list: for tests, and to measure what the choice is worth.
std::span<const HopperSize> hopper_sizes64_on_gpu();
/// The same for 128 channels.
std::span<const HopperSize> hopper_sizes128_on_gpu();

/// "cuda_hopper_paired": in pairs of blocks, whatever the problem, and in fp16, too. Not on the
/// list: it is for tests.
extern const Implementation CUDA_HOPPER_PAIRED;

}  // namespace fa
