#pragma once
/// @file
/// What tensor cores make necessary: a masked key has the weight 0, and 0·NaN is NaN. Chapter 4
/// left such keys out of the sum; a matrix product cannot.

#include "chapters/08_tensor_cores/arguments.h"
#include "chapters/08_tensor_cores/shared_tile.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// The exponent of T, all ones, in both halves of a register.
template <class T>
inline constexpr std::uint32_t EXPONENTS = std::is_same_v<T, BFloat16> ? 0x7f807f80u : 0x7c007c00u;

/// Nonzero if one of the two elements in a register is NaN or infinite: one more in the lowest
/// digit of an exponent that is all ones carries into the sign.
template <class T>
__device__ __forceinline__ std::uint32_t not_finite(std::uint32_t pair) {
    constexpr std::uint32_t ONES = EXPONENTS<T> & ~(EXPONENTS<T> << 1);
    return ((pair & EXPONENTS<T>)+ONES) & 0x80008000u;
}

// [masked-values]
/// Makes a tile of V fit to be multiplied by weights of 0. Where it holds NaN or infinity, those
/// are added to the rows that see them, and become 0 in shared memory. All threads of the block
/// call it, for tiles in which some keys are masked.
/// @param O        rows of the lane, ROW_TILES times 16 to the warp
/// @param visible  of this tile's keys, how many each of the lane's rows sees
template <class T, class Copy, class Layout, int BLOCK_N, int ROW_TILES, int COLUMN_TILES>
__device__ __forceinline__ void set_masked_values_aside(SharedAddress V_smem, const Copy& copy,
                                                        const Lane& lane,
                                                        const int (&visible)[ROW_TILES][2],
                                                        float (&O)[ROW_TILES][COLUMN_TILES][4]) {
    std::uint32_t found = 0;
#pragma unroll
    for (int i = 0; i < Copy::TIMES; ++i) {
        const auto chunk = load_shared<Packed<std::uint32_t, 4>>(copy.place(V_smem, i));
#pragma unroll
        for (int e = 0; e < 4; ++e) found |= not_finite<T>(chunk[e]);
    }
    if (!__syncthreads_or(found != 0)) return;  // as good as always

    for (int key = 0; key < BLOCK_N; ++key)
#pragma unroll
        for (int j = 0; j < COLUMN_TILES; ++j) {
            const auto pair = load_shared<Packed<T, 2>>(V_smem + Layout::offset(key, j) +
                                                        static_cast<std::uint32_t>(4 * lane.pair));
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const float v = to_float(pair[e]);
                if (v - v == 0.0f) continue;  // finite
#pragma unroll
                for (int i = 0; i < ROW_TILES; ++i)
#pragma unroll
                    for (int h = 0; h < 2; ++h)
                        if (key < visible[i][h]) O[i][j][2 * h + e] += v;
            }
        }
    __syncthreads();
    for (int i = 0; i < Copy::TIMES; ++i) {
        auto chunk = load_shared<Packed<T, 8>>(copy.place(V_smem, i));
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            const float v = to_float(chunk[e]);
            if (v - v != 0.0f) chunk[e] = T{};
        }
        store_shared(copy.place(V_smem, i), chunk);
    }
    __syncthreads();
}
// [masked-values]

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
