#pragma once
/// @file
/// A kernel of one warpgroup that shows what TMA and products make of shared memory: for the
/// executor and for the GPU.

#include "chapters/09_hopper/layout_results.h"
#include "chapters/09_hopper/products.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// Bytes of shared memory: a box, and a barrier.
inline constexpr std::size_t PROBE_SHARED_BYTES = box_bytes(64) + 8;

// [probe]
/// Loads a box of 64 × 64 elements, copies shared memory as it lies there, and multiplies the box
/// by its transpose and by itself.
/// @param memory, by_rows_out, by_columns_out the members of LayoutResults
__global__ void probe_layout(const __grid_constant__ TensorMap map,
                             GlobalPointer<std::uint32_t> memory, GlobalPointer<float> by_rows_out,
                             GlobalPointer<float> by_columns_out) {
    const SharedAddress tile = shared_address(0), barrier = shared_address(box_bytes(64));
    const auto t = static_cast<int>(threadIdx.x);
    if (t == 0) {
        init_barrier(barrier, 1);
        publish_barriers();
        arrive_expecting(barrier, box_bytes(64));
        load_box(tile, map, barrier, 0, 0, 0, 0);
    }
    __syncthreads();
    wait_phase(barrier, 0);
    for (int word = t; word < 64 * 64 / 2; word += 128)
        memory[word] = load_shared<std::uint32_t>(tile + static_cast<std::uint32_t>(4 * word));

    float by_its_transpose[8][4], by_itself[8][4];
    fence_products();
#pragma unroll
    for (std::uint32_t step = 0; step < 4; ++step) {
        const Matrix left = by_rows(tile) + step * DEEPER_BY_ROWS;
        const Matrix right = by_columns(tile, box_bytes(64)) + step * DEEPER_BY_COLUMNS;
        using Transposed = Product<Float16, 64, /*B_IS_ROWS=*/false>;
        using Straight = Product<Float16, 64, /*B_IS_ROWS=*/true>;
        if (step == 0) {
            Transposed::multiply(by_its_transpose, left, left);
            Straight::multiply(by_itself, left, right);
        } else {
            Transposed::add(by_its_transpose, left, left);
            Straight::add(by_itself, left, right);
        }
    }
    commit_products();
    wait_products<0>();
    pin(by_its_transpose);
    pin(by_itself);
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            by_rows_out[32 * t + 4 * j + e] = by_its_transpose[j][e];
            by_columns_out[32 * t + 4 * j + e] = by_itself[j][e];
        }
}
// [probe]

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
