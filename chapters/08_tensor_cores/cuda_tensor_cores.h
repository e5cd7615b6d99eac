#pragma once
/// @file
/// The chapter's last kernel on the GPU.

#include "chapters/04_cuda_tiled/kernel_resources.h"
#include "common/attention.h"

namespace fa {

/// "cuda_tensor_cores". Only in builds with CUDA.
extern const Implementation CUDA_TENSOR_CORES;

/// What it needs of a multiprocessor for a problem. @throws CudaError
KernelResources tensor_cores_resources(const AttentionProblem& problem);

}  // namespace fa
