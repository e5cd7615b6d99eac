#pragma once
/// @file
/// The steps of the ladder: the same sources on the executor and the GPU.

#include <span>
#include <string_view>

#include "chapters/04_cuda_tiled/kernel_resources.h"
#include "common/attention.h"

namespace fa {

/// The steps on the executor, "executor_wgmma" … "executor_hopper_lazy". They are not on the list,
/// which a machine without a GPU goes through, too, but tests hold them to the same suite.
std::span<const Implementation> hopper_ladder_on_executor();

extern const Implementation CUDA_WGMMA;        ///< step 1, "cuda_wgmma". Only in builds for 90a
extern const Implementation CUDA_PRODUCER;     ///< step 2
extern const Implementation CUDA_OVERLAP;      ///< step 3
extern const Implementation CUDA_PING_PONG;    ///< step 4
extern const Implementation CUDA_WARPGROUPS;   ///< step 5
extern const Implementation CUDA_DIAGONAL;     ///< step 6
extern const Implementation CUDA_PERSISTENT;   ///< step 7
extern const Implementation CUDA_HOPPER_LAZY;  ///< step 8

/// What a step, named as in the list, needs of a multiprocessor for a problem. Only in builds for
/// 90a. @throws std::invalid_argument for another name; CudaError
KernelResources hopper_ladder_resources(std::string_view name, const AttentionProblem& problem);

}  // namespace fa
