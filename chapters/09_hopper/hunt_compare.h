#pragma once
/// @file
/// Whether two pieces of device memory hold the same bits, found out by the GPU itself, so that
/// every one of many launches can be looked at.

#include <cuda_runtime_api.h>

#include <cstddef>

namespace fa {

/// Adds the number of 4-byte words that differ to a counter, on the stream, which may be recording.
/// @param bytes a multiple of 4, as are the addresses @throws CudaError
void count_differing_words(const std::byte* here, const std::byte* there, std::size_t bytes,
                           unsigned long long* counter, cudaStream_t stream);

}  // namespace fa
