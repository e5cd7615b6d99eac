#pragma once
/// @file
/// Launching a kernel with its dynamic shared memory allowed and its errors checked.

#include <cstddef>
#include <cstdint>

#include "common/cuda/check.h"

namespace fa {

/// Whether a grid waits for the one before it on the stream.
enum class Begin {
    after_all_before,  ///< as launches do by default
    early  ///< as soon as the one before allows it and there is room (programmatic dependent
           ///< launch, from compute capability 9.0 on): the kernel itself must wait before it
           ///< touches global memory
};

/// Launches `kernel` on `blocks` blocks of `threads` threads.
/// @tparam CLUSTER blocks that run at the same time and share their memory (from compute capability
///                 9.0 on); `blocks` is a multiple of it
/// @throws CudaError if the launch is refused: too much shared memory, no kernel image for this
/// GPU, …
template <Begin BEGIN = Begin::after_all_before, int CLUSTER = 1, class... Parameters,
          class... Arguments>
void launch(void (*kernel)(Parameters...), std::int64_t blocks, int threads,
            std::size_t shared_bytes, cudaStream_t stream, const Arguments&... arguments) {
    // Always, not only above 48 KiB: the limit without it counts static shared memory too.
    FA_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(shared_bytes)));
    static_assert(CLUSTER >= 1 && CLUSTER <= 8, "what every GPU with clusters takes");
    cudaLaunchAttribute attributes[2]{};
    unsigned count = 0;
    if constexpr (BEGIN == Begin::early) {
        cudaLaunchAttribute& early = attributes[count++];
        early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        early.val.programmaticStreamSerializationAllowed = 1;
    }
    if constexpr (CLUSTER > 1) {
        cudaLaunchAttribute& cluster = attributes[count++];
        cluster.id = cudaLaunchAttributeClusterDimension;
        cluster.val.clusterDim = {CLUSTER, 1, 1};
    }
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = count;
    FA_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, arguments...));
}

}  // namespace fa
