#pragma once
/// @file
/// A kernel to launch rightly and wrongly.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace fa {

/// Writes `value` to `out[0]`, with the launch as asked. @throws CudaError
void launch_store(float* out, float value, std::int64_t blocks, int threads,
                  std::size_t shared_bytes, cudaStream_t stream);

}  // namespace fa
