#pragma once
/// @file
/// What the layout probe brings back.

#include <cstdint>
#include <span>

namespace fa {

/// A box of 64 × 64 elements in shared memory, and its products with itself.
struct LayoutResults {
    std::uint16_t memory[64 * 64];  ///< the box, as it lies there
    float by_rows[128][8][4];       ///< what each thread holds of tile · tileᵀ
    float by_columns[128][8][4];    ///< what each thread holds of tile · tile
};

/// An element of D.
struct PlaceInD {
    int row, column;
};

/// Which element of D thread t of a warpgroup holds in d[j][e] (PTX ISA, "Register Fragments for
/// wgmma.mma_async.m64nNk16").
constexpr PlaceInD place_in_d(int t, int j, int e) {
    return {16 * (t / 32) + t % 32 / 4 + 8 * (e / 2), 8 * j + 2 * (t % 4) + e % 2};
}

/// Runs the probe on the executor. @param tile 64 × 64 numbers of fp16, row by row, as bits
LayoutResults probe_layout_on_executor(std::span<const std::uint16_t> tile);

/// Runs it on the GPU. Only in builds for 90a. @throws CudaError
LayoutResults probe_layout_on_gpu(std::span<const std::uint16_t> tile);

}  // namespace fa
