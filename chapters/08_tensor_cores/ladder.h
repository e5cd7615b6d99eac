#pragma once
/// @file
/// The steps of the ladder: the same sources on the executor and the GPU.

#include <span>
#include <string_view>

#include "chapters/04_cuda_tiled/kernel_resources.h"
#include "common/attention.h"

namespace fa {

/// The steps on the executor, "executor_mma" … "executor_lazy". They are not on the list, which a
/// machine without a GPU goes through, too, but tests hold them to the same suite.
std::span<const Implementation> ladder_on_executor();

extern const Implementation CUDA_MMA;        ///< step 1, "cuda_mma". Only in builds with CUDA
extern const Implementation CUDA_LDMATRIX;   ///< step 2
extern const Implementation CUDA_SWIZZLE;    ///< step 3
extern const Implementation CUDA_REGISTERS;  ///< step 4
extern const Implementation CUDA_CP_ASYNC;   ///< step 5
extern const Implementation CUDA_MASKS;      ///< step 6
extern const Implementation CUDA_LAZY;       ///< step 7

/// What a step, named as in the list, needs of a multiprocessor for a problem. Only in builds with
/// CUDA. @throws std::invalid_argument for another name; CudaError
KernelResources ladder_resources(std::string_view name, const AttentionProblem& problem);

}  // namespace fa
