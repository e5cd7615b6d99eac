#pragma once
/// @file
/// The way out for O and LSE: from accumulators to global memory, by way of shared memory where
/// rows take 16 bytes at a time.

#include "chapters/05_exp2/folded_scale.h"
#include "chapters/08_tensor_cores/arguments.h"
#include "chapters/08_tensor_cores/shared_tile.h"
#include "chapters/08_tensor_cores/softmax_rows.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// The first element of O of a block.
template <class T, class Position>
__device__ __forceinline__ GlobalPointer<T> output_of(const Arguments<T>& a, const Position& at) {
    return a.o + (at.batch * a.o_strides.batch + at.head_q * a.o_strides.head +
                  at.first_q * a.o_strides.token);
}

/// Divides the lane's two rows by their sums and stores their LSE. A row without weight becomes 0.
/// @param row of the first, counted from the block's first
template <class T, class Position, int COLUMN_TILES>
__device__ __forceinline__ void finish_rows(const Arguments<T>& a, const Position& at,
                                            const Lane& lane, int row, FoldedScale scale,
                                            const float (&m)[2], const float (&l)[2],
                                            float (&O)[COLUMN_TILES][4]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const float sum = row_of_four_sum(l[h]);
        const float inverse = 1.0f / sum;
#pragma unroll
        for (int j = 0; j < COLUMN_TILES; ++j)
#pragma unroll
            for (int e = 2 * h; e < 2 * h + 2; ++e)
                O[j][e] = sum == 0.0f ? 0.0f : O[j][e] * inverse;
        const int query = at.first_q + row + 8 * h;
        if (a.lse && lane.pair == 0 && query < a.len_q)
            a.lse[at.batch * a.lse_stride_batch + at.head_q * a.lse_stride_head + query] =
                sum == 0.0f ? minus_infinity() : (m[h] * scale.scale_log2 + log2f(sum)) * LN_2;
    }
}

/// Stores the lane's two rows straight from its registers, two elements at a time at best.
/// @param rows how many the block has
template <class T, int COLUMN_TILES>
__device__ __forceinline__ void store_from_registers(const Arguments<T>& a, GlobalPointer<T> o,
                                                     const Lane& lane, int row, int rows,
                                                     const float (&O)[COLUMN_TILES][4]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        if (row + 8 * h >= rows) continue;
        const GlobalPointer<T> to = o + (row + 8 * h) * a.o_strides.token;
#pragma unroll
        for (int j = 0; j < COLUMN_TILES; ++j) {
            const int c = 8 * j + 2 * lane.pair;
            if (a.chunked) {
                if (c < a.head_dim)
                    store_packed(to + c, Packed<T, 2>{{from_float<T>(O[j][2 * h]),
                                                       from_float<T>(O[j][2 * h + 1])}});
            } else {
                if (c < a.head_dim) to[c] = from_float<T>(O[j][2 * h]);
                if (c + 1 < a.head_dim) to[c + 1] = from_float<T>(O[j][2 * h + 1]);
            }
        }
    }
}

// [staged]
/// Puts the lane's two rows into a tile in shared memory.
/// @param row of the first, counted from the tile's first
template <class T, class Layout, int COLUMN_TILES>
__device__ __forceinline__ void stage_rows(SharedAddress tile, const Lane& lane, int row,
                                           const float (&O)[COLUMN_TILES][4]) {
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int j = 0; j < COLUMN_TILES; ++j)
            store_shared(
                tile + Layout::offset(row + 8 * h, j) + static_cast<std::uint32_t>(4 * lane.pair),
                pack<T>(O[j][2 * h], O[j][2 * h + 1]));
}

/// Stores WARP_ROWS rows of the tile, all by one warp, 16 bytes at a time and row by row.
template <class T, class Layout, int WARP_ROWS>
__device__ __forceinline__ void store_staged(const Arguments<T>& a, GlobalPointer<T> o,
                                             SharedAddress tile, const Lane& lane, int first_row,
                                             int rows) {
    for (int n = lane.index; n < WARP_ROWS * Layout::CHUNKS; n += 32) {
        const int row = first_row + n / Layout::CHUNKS, chunk = n % Layout::CHUNKS;
        const auto elements = load_shared<Packed<T, 8>>(tile + Layout::offset(row, chunk));
        if (row < rows && 8 * chunk < a.head_dim)
            store_packed(o + (row * a.o_strides.token + 8 * chunk), elements);
    }
}
// [staged]

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
