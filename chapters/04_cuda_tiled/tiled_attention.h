#pragma once
/// @file
/// The fused kernels of this chapter on the GPU.

#include "chapters/04_cuda_tiled/kernel_resources.h"
#include "common/attention.h"

namespace fa {

/// "cuda_tiled": the first fused kernel, plain.
extern const Implementation CUDA_TILED;

/// "cuda_register_tiled": the same with register tiles.
extern const Implementation CUDA_REGISTER_TILED;

/// Resources of "cuda_tiled" or "cuda_register_tiled" for a problem.
/// @throws std::invalid_argument for another name; CudaError
KernelResources kernel_resources(std::string_view name, const AttentionProblem& problem);

}  // namespace fa
