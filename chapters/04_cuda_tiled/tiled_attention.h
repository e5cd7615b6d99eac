#pragma once
/// @file
/// The fused kernels of this chapter on the GPU.

#include "common/attention.h"

namespace fa {

/// "cuda_tiled": the first fused kernel, plain.
extern const Implementation CUDA_TILED;

/// "cuda_register_tiled": the same with register tiles.
extern const Implementation CUDA_REGISTER_TILED;

/// What a kernel needs of a multiprocessor, as the driver reports it.
struct KernelResources {
    std::int64_t blocks = 0;  ///< blocks launched
    int block_m = 0, block_n = 0;
    int threads = 0;
    std::size_t shared_bytes = 0;  ///< per block
    int registers = 0;             ///< per thread
    std::size_t local_bytes = 0;   ///< per thread: spilled registers and the stack
    int blocks_per_multiprocessor = 0;
    double occupancy = 0;  ///< resident warps over the most possible
};

/// Resources of "cuda_tiled" or "cuda_register_tiled" for a problem.
/// @throws std::invalid_argument for another name; CudaError
KernelResources kernel_resources(std::string_view name, const AttentionProblem& problem);

}  // namespace fa
