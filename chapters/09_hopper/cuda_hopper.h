#pragma once
/// @file
/// The chapter's last kernels on the GPU.

#include "chapters/04_cuda_tiled/kernel_resources.h"
#include "common/attention.h"

namespace fa {

/// "cuda_hopper". Only in builds for 90a.
extern const Implementation CUDA_HOPPER;

/// "cuda_hopper_paired": in pairs of blocks, whatever the problem. Not on the list: it is for
/// tests, which would have to wait for the long problems that are given to it otherwise.
extern const Implementation CUDA_HOPPER_PAIRED;

/// What the kernel for a problem needs of a multiprocessor. @throws CudaError
KernelResources hopper_resources(const AttentionProblem& problem);

}  // namespace fa
