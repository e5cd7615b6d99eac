#pragma once
/// @file
/// The chapter's last kernels on the GPU.

#include "chapters/04_cuda_tiled/kernel_resources.h"
#include "common/attention.h"

namespace fa {

/// "cuda_hopper". Only in builds for 90a.
extern const Implementation CUDA_HOPPER;

/// What the kernel for a problem needs of a multiprocessor. @throws CudaError
KernelResources hopper_resources(const AttentionProblem& problem);

}  // namespace fa
