#pragma once
/// @file
/// The two products of attention by a warpgroup: 64 queries, BLOCK_N keys, HEAD_DIM channels.

#include "chapters/08_tensor_cores/fragments.h"
#include "common/hopper_language.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// Bytes of `rows` rows of 64 elements, as TMA puts them into shared memory.
constexpr std::uint32_t box_bytes(int rows) {
    return static_cast<std::uint32_t>(rows) * 128;
}

// [scores]
/// Begins S = Q·Kᵀ. A tile wider than 64 channels is several boxes, one behind the other.
/// @param q, k   by_rows() of the tiles' first boxes
/// @param q_box  bytes from one box of Q to the next
template <class T, int HEAD_DIM, int BLOCK_N>
__device__ __forceinline__ void begin_scores(float (&S)[BLOCK_N / 8][4], Matrix q,
                                             std::uint32_t q_box, Matrix k) {
    using Scores = Product<T, BLOCK_N, /*B_IS_ROWS=*/false>;
    fence_products();
#pragma unroll
    for (int step = 0; step < HEAD_DIM / 16; ++step) {
        const auto box = static_cast<std::uint32_t>(step / 4);
        const auto within = static_cast<std::uint32_t>(step % 4) * DEEPER_BY_ROWS;
        const Matrix q_step = q + box * q_box / 16 + within;
        const Matrix k_step = k + box * box_bytes(BLOCK_N) / 16 + within;
        if (step == 0)
            Scores::multiply(S, q_step, k_step);
        else
            Scores::add(S, q_step, k_step);
    }
    commit_products();
}
// [scores]

// [weighted-sum]
/// Begins O += P·V, P from registers.
/// @param v by_columns() of the tile's first box
template <class T, int HEAD_DIM, int BLOCK_N>
__device__ __forceinline__ void begin_weighted_sum(float (&O)[HEAD_DIM / 8][4],
                                                   const std::uint32_t (&P)[BLOCK_N / 16][4],
                                                   Matrix v) {
    fence_products();
#pragma unroll
    for (int step = 0; step < BLOCK_N / 16; ++step)
        Product<T, HEAD_DIM, /*B_IS_ROWS=*/true>::add(
            O, P[step], v + static_cast<Matrix>(step) * DEEPER_BY_COLUMNS);
    commit_products();
}
// [weighted-sum]

/// P as operand A: the registers of two neighbouring pieces of S, rounded (chapter 8).
template <class T, int BLOCK_N>
__device__ __forceinline__ void pack_all(std::uint32_t (&P)[BLOCK_N / 16][4],
                                         const float (&S)[BLOCK_N / 8][4]) {
#pragma unroll
    for (int step = 0; step < BLOCK_N / 16; ++step)
        pack_weights<T>(P[step], S[2 * step], S[2 * step + 1]);
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
