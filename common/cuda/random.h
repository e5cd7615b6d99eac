#pragma once
/// @file
/// Seeded random inputs made where they are needed: 16k tokens of 48 heads are 150 million numbers,
/// seconds of work for a CPU and well under a millisecond for a GPU.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "common/dtype.h"

namespace fa {

/// Fills device memory with standard-normal numbers. The i-th depends on seed and i alone
/// (SplitMix64 as a counter-based generator, then Box–Muller), whatever the launch looks like. They
/// are other numbers than common/random.h gives for the same seed.
/// @param data `count` elements of type `dtype`
/// @throws CudaError
void fill_normal_on_device(void* data, DType dtype, std::int64_t count, std::uint64_t seed,
                           cudaStream_t stream);

}  // namespace fa
