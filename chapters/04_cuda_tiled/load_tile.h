#pragma once
/// @file
/// From a block of token rows in global memory to an fp32 tile in shared memory.

#include "common/kernel_language.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// The least row stride ≥ `columns` floats at which the rows that a warp writes at once, `lanes`
/// floats of each, lie in different ones of the 32 banks.
constexpr int padded_stride(int columns, int lanes) {
    return columns + (lanes + 32 - columns % 32) % 32;
}

// [load-tile]
/// tile[row][c] = factor · source[row][c] for ROWS × HEAD_DIM elements, by all THREADS of the
/// block, N elements by one load. Rows beyond `rows` and channels beyond `head_dim` become 0:
/// whatever lies there in memory, NaN perhaps, is never read.
template <int ROWS, int HEAD_DIM, int TILE_STRIDE, int THREADS, int N, class T>
__device__ __forceinline__ void load_pieces(GlobalPointer<const T> source, std::int64_t stride,
                                            int rows, int head_dim, float factor,
                                            SharedPointer<float> tile) {
    constexpr int PIECES_PER_ROW = HEAD_DIM / N;
    // Neighbouring threads take neighbouring pieces of a row, so that a warp's loads coalesce.
    for (int i = static_cast<int>(threadIdx.x); i < ROWS * PIECES_PER_ROW; i += THREADS) {
        const int row = i / PIECES_PER_ROW, c = i % PIECES_PER_ROW * N;
        Packed<T, N> piece{};
        if (row < rows && c < head_dim) piece = load_packed<N>(source + (row * stride + c));
        Packed<float, N> floats;
#pragma unroll
        for (int e = 0; e < N; ++e) floats[e] = to_float(piece[e]) * factor;
        if constexpr (TILE_STRIDE % N == 0) {
            store_packed(tile + (row * TILE_STRIDE + c), floats);
        } else {
#pragma unroll
            for (int e = 0; e < N; ++e) tile[row * TILE_STRIDE + c + e] = floats[e];
        }
    }
}

/// As load_pieces(), four elements at a time where rows allow it.
/// @param source first row, in global memory; rows are `stride` elements apart
/// @param wide   rows_are_wide()
/// @param tile   [ROWS][TILE_STRIDE], in shared memory
template <int ROWS, int HEAD_DIM, int TILE_STRIDE, int THREADS, class T>
__device__ __forceinline__ void load_tile(GlobalPointer<const T> source, std::int64_t stride,
                                          int rows, int head_dim, bool wide, float factor,
                                          SharedPointer<float> tile) {
    if (wide)  // the same for the whole grid
        load_pieces<ROWS, HEAD_DIM, TILE_STRIDE, THREADS, 4, T>(source, stride, rows, head_dim,
                                                                factor, tile);
    else
        load_pieces<ROWS, HEAD_DIM, TILE_STRIDE, THREADS, 1, T>(source, stride, rows, head_dim,
                                                                factor, tile);
}
// [load-tile]

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
