#pragma once
/// @file
/// What the fragment probe brings back.

#include <array>
#include <cstdint>

namespace fa {

/// What one lane holds. Elements are fp16, two in a register, each the number of its place.
struct alignas(16) ProbeResults {
    std::uint32_t a[4];  ///< A, by ldmatrix
    std::uint32_t k[4];  ///< B out of rows that are its columns, by ldmatrix
    std::uint32_t v[4];  ///< B out of rows that are its rows, by ldmatrix.trans
    float by_k[4];       ///< the tile times its own transpose, columns 0 … 7
    float by_v[4];       ///< the tile times itself, columns 0 … 7
};

/// The 32 lanes.
using WarpProbe = std::array<ProbeResults, 32>;

/// Runs the probe on the executor.
WarpProbe probe_on_executor();

/// Runs it on the GPU. Only in builds with CUDA. @throws CudaError
WarpProbe probe_on_gpu();

}  // namespace fa
