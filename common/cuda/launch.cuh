#pragma once
/// @file
/// Launching a kernel with its dynamic shared memory allowed and its errors checked.

#include <cstddef>
#include <cstdint>

#include "common/cuda/check.h"

namespace fa {

/// Launches `kernel` on `blocks` blocks of `threads` threads.
/// @throws CudaError if the launch is refused: too much shared memory, no kernel image for this
/// GPU, …
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), std::int64_t blocks, int threads,
            std::size_t shared_bytes, cudaStream_t stream, const Arguments&... arguments) {
    // Always, not only above 48 KiB: the limit without it counts static shared memory too.
    FA_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(shared_bytes)));
    kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), shared_bytes, stream>>>(
        arguments...);
    FA_CUDA_CHECK(cudaGetLastError());
}

}  // namespace fa
