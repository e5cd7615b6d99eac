#pragma once
/// @file
/// Step 1: both products on tensor cores. Each lane gathers the elements of its fragments itself.

#include "chapters/08_tensor_cores/fragments.h"
#include "chapters/08_tensor_cores/ladder_sizes.h"
#include "chapters/08_tensor_cores/masked_values.h"
#include "chapters/08_tensor_cores/store_rows.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

struct MmaStep : LadderSizes {
    using Layout = TileLayout<64, /*SWIZZLED=*/false>;
    using Copy = TileCopy<64, Layout, THREADS>;
    static constexpr std::size_t SHARED_BYTES = 4 * TILE_BYTES;  // Q, K, V and P
    template <class T>
    static constexpr auto kernel();
};

// [gather]
/// Two elements that are neighbours in a row, 32 bits.
template <class Layout>
__device__ __forceinline__ std::uint32_t pair_of_row(SharedAddress tile, int row, int chunk,
                                                     const Lane& lane) {
    return load_shared<std::uint32_t>(tile + Layout::offset(row, chunk) +
                                      static_cast<std::uint32_t>(4 * lane.pair));
}
/// Two elements that are neighbours in a column: 16 bits from each of two rows.
template <class Layout>
__device__ __forceinline__ std::uint32_t pair_of_column(SharedAddress tile, int row, int chunk,
                                                        const Lane& lane) {
    const auto column = static_cast<std::uint32_t>(2 * lane.group);
    const std::uint32_t low =
        load_shared<std::uint16_t>(tile + Layout::offset(row, chunk) + column);
    const std::uint32_t high =
        load_shared<std::uint16_t>(tile + Layout::offset(row + 1, chunk) + column);
    return low | high << 16;
}
/// A for 16 rows and 16 columns.
template <class Layout>
__device__ __forceinline__ void gather_a(std::uint32_t (&a)[4], SharedAddress tile, int first_row,
                                         int step, const Lane& lane) {
    const int row = first_row + lane.group;
    a[0] = pair_of_row<Layout>(tile, row, 2 * step, lane);
    a[1] = pair_of_row<Layout>(tile, row + 8, 2 * step, lane);
    a[2] = pair_of_row<Layout>(tile, row, 2 * step + 1, lane);
    a[3] = pair_of_row<Layout>(tile, row + 8, 2 * step + 1, lane);
}
// [gather]

/// Grid: query blocks × heads × batch in x. Block: THREADS. Shared memory: SHARED_BYTES.
template <class T>
__global__ void __launch_bounds__(MmaStep::THREADS, MmaStep::BLOCKS_PER_SM)
    mma_attention(const Arguments<T> a) {
    using Step = MmaStep;
    using Layout = Step::Layout;
    const SharedAddress Q_smem = shared_address(0), K_smem = Q_smem + Step::TILE_BYTES;
    const SharedAddress V_smem = K_smem + Step::TILE_BYTES, P_smem = V_smem + Step::TILE_BYTES;
    const BlockPosition at(a, blockIdx.x, Step::BLOCK_M);
    const Sources<T> from(a, at);
    const FoldedScale scale(a.scale);
    const Lane lane;
    const Step::Copy copy;
    const int rows = min(Step::BLOCK_M, a.len_q - at.first_q);
    const int first_row = Step::WARP_ROWS * lane.warp;

    copy.load<T>(Q_smem, from.q, a.q_strides.token, rows, a.head_dim, a.chunked);
    if (scale.sign != 1.0f) copy.multiply<T>(Q_smem, scale.sign);

    float O[1][Step::COLUMN_TILES][4] = {};
    float m[2] = {minus_infinity(), minus_infinity()}, l[2] = {};
    const int keys = a.visible_keys(at.first_q + rows - 1);
    for (int n = (keys + Step::BLOCK_N - 1) / Step::BLOCK_N - 1; n >= 0; --n) {
        const int first_kv = n * Step::BLOCK_N;
        __syncthreads();  // nobody reads the last K and V any more
        copy.load<T>(K_smem, from.k + first_kv * a.k_strides.token, a.k_strides.token,
                     a.len_kv - first_kv, a.head_dim, a.chunked);
        copy.load<T>(V_smem, from.v + first_kv * a.v_strides.token, a.v_strides.token,
                     a.len_kv - first_kv, a.head_dim, a.chunked);
        __syncthreads();  // K, V and Q are complete
        int visible[1][2];
        visible_from(a, at.first_q + first_row + lane.group, first_kv, visible[0]);
        set_masked_values_aside<T, Step::Copy, Layout, Step::BLOCK_N>(V_smem, copy, lane, visible,
                                                                      O);
        // [scores]
        float S[Step::KEY_TILES][4] = {};
#pragma unroll
        for (int step = 0; step < Step::K_STEPS; ++step) {
            std::uint32_t Q[4];
            gather_a<Layout>(Q, Q_smem, first_row, step, lane);
#pragma unroll
            for (int j = 0; j < Step::KEY_TILES; ++j)
                multiply_add<T>(
                    S[j], Q, pair_of_row<Layout>(K_smem, 8 * j + lane.group, 2 * step, lane),
                    pair_of_row<Layout>(K_smem, 8 * j + lane.group, 2 * step + 1, lane));
        }
        // [scores]
        mask_scores(S, lane, visible[0]);
        softmax(S, scale, m, l, O[0]);

        // [weighted-sum]
        stage_rows<T, Layout>(P_smem, lane, first_row + lane.group, S);
        warp_barrier();  // a row of P is written and read by the same warp
#pragma unroll
        for (int step = 0; step < Step::K_STEPS; ++step) {
            std::uint32_t P[4];
            gather_a<Layout>(P, P_smem, first_row, step, lane);
            const int key = 16 * step + 2 * lane.pair;
#pragma unroll
            for (int j = 0; j < Step::COLUMN_TILES; ++j)
                multiply_add<T>(O[0][j], P, pair_of_column<Layout>(V_smem, key, j, lane),
                                pair_of_column<Layout>(V_smem, key + 8, j, lane));
        }
        // [weighted-sum]
    }
    finish_rows(a, at, lane, first_row + lane.group, scale, m, l, O[0]);
    store_from_registers(a, output_of(a, at), lane, first_row + lane.group, rows, O[0]);
}

template <class T>
constexpr auto MmaStep::kernel() {
    return &mma_attention<T>;
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
