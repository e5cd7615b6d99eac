#pragma once
/// @file
/// From a block of token rows in global memory to an fp32 tile in shared memory.

#include "common/kernel_language.h"

namespace fa::inline FA_KERNEL_NAMESPACE {

/// Elements that one 16-byte load brings.
template <class T>
inline constexpr int PACK = 16 / static_cast<int>(sizeof(T));

// [load-tile]
/// tile[row][c] = factor · source[row][c] for ROWS × HEAD_DIM elements, by all THREADS of the
/// block. Rows beyond `rows` and channels beyond `head_dim` become 0: whatever lies there in
/// memory, NaN perhaps, is never read.
/// @tparam WIDE loads 16 bytes at a time; needs rows aligned to 16 bytes and head_dim a multiple of
///              PACK<T>, which the host checks
/// @param source first row; rows are `stride` elements apart
/// @param tile   [ROWS][TILE_STRIDE] in shared memory
template <int ROWS, int HEAD_DIM, int TILE_STRIDE, int THREADS, bool WIDE, class T>
__device__ __forceinline__ void load_tile(GlobalPointer<const T> source, std::int64_t stride,
                                          int rows, int head_dim, float factor,
                                          SharedPointer<float> tile) {
    constexpr int N = WIDE ? PACK<T> : 1;
    constexpr int PIECES_PER_ROW = HEAD_DIM / N;
    // Neighbouring threads take neighbouring pieces of a row, so that a warp's loads coalesce.
    for (int i = static_cast<int>(threadIdx.x); i < ROWS * PIECES_PER_ROW; i += THREADS) {
        const int row = i / PIECES_PER_ROW, c = i % PIECES_PER_ROW * N;
        Packed<T, N> piece{};
        if (row < rows && c < head_dim) piece = load_packed<N>(source + (row * stride + c));
#pragma unroll
        for (int e = 0; e < N; ++e) tile[row * TILE_STRIDE + c + e] = to_float(piece[e]) * factor;
    }
}
// [load-tile]

}  // namespace fa::inline FA_KERNEL_NAMESPACE
