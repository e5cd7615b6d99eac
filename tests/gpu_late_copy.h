#pragma once
/// @file
/// Copies that overlap with the grid launched behind them. Only in builds for 90a.

#include <cuda_runtime_api.h>

#include <cstddef>

namespace fa {

/// Copies `bytes`, a multiple of 16, by a grid that begins early (common/cuda/launch.cuh), lets the
/// next begin at once, waits for those before it, dawdles for `cycles`, and only then reads and
/// writes. A grid behind it that begins early, too, has that long to do what it must not: read
/// `to`, or write `from`. @throws CudaError
void launch_late_copy(void* to, const void* from, std::size_t bytes, long long cycles,
                      cudaStream_t stream);

/// Copies as well, and begins early as well, but does not wait for the grids before it: the fault.
/// @throws CudaError
void launch_hasty_copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream);

}  // namespace fa
