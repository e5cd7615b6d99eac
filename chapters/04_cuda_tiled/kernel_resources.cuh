#pragma once
/// @file
/// What the driver says that a kernel needs.

#include "chapters/04_cuda_tiled/kernel_resources.h"
#include "common/cuda/check.h"

namespace fa {

/// Resources of a kernel function with the given sizes, which is allowed its shared memory first.
/// @throws CudaError
template <class Config, class Kernel>
KernelResources resources_of(std::int64_t blocks, Kernel* kernel) {
    KernelResources r = sizes_of_config<Config>(blocks);
    cudaFuncAttributes attributes;
    FA_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
    FA_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(Config::SHARED_BYTES)));
    FA_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &r.blocks_per_multiprocessor, kernel, Config::THREADS, Config::SHARED_BYTES));
    int device = 0, most_threads = 0;
    FA_CUDA_CHECK(cudaGetDevice(&device));
    FA_CUDA_CHECK(
        cudaDeviceGetAttribute(&most_threads, cudaDevAttrMaxThreadsPerMultiProcessor, device));
    r.registers = attributes.numRegs;
    r.local_bytes = attributes.localSizeBytes;
    r.occupancy = static_cast<double>(r.blocks_per_multiprocessor * r.threads) / most_threads;
    return r;
}

}  // namespace fa
