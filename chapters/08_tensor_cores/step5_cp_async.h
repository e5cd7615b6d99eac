#pragma once
/// @file
/// Step 5: cp.async. While a tile is in work, the next one is on its way, into a second pair of
/// buffers.

#include "chapters/08_tensor_cores/fragments.h"
#include "chapters/08_tensor_cores/ladder_sizes.h"
#include "chapters/08_tensor_cores/masked_values.h"
#include "chapters/08_tensor_cores/store_rows.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

struct CpAsyncStep : LadderSizes {
    using Layout = TileLayout<64, /*SWIZZLED=*/true>;
    using Copy = TileCopy<64, Layout, THREADS>;
    static constexpr std::size_t SHARED_BYTES = 5 * TILE_BYTES;  // Q, two of K and V
    template <class T>
    static constexpr auto kernel();
};

/// Grid: query blocks × heads × batch in x. Block: THREADS. Shared memory: SHARED_BYTES.
template <class T>
__global__ void __launch_bounds__(CpAsyncStep::THREADS, CpAsyncStep::BLOCKS_PER_SM)
    cp_async_attention(const Arguments<T> a) {
    using Step = CpAsyncStep;
    using Layout = Step::Layout;
    const SharedAddress Q_smem = shared_address(0), K_smem = Q_smem + Step::TILE_BYTES;
    const SharedAddress V_smem = K_smem + 2 * Step::TILE_BYTES;
    const BlockPosition at(a, blockIdx.x, Step::BLOCK_M);
    const Sources<T> from(a, at);
    const FoldedScale scale(a.scale);
    const Lane lane;
    const Step::Copy copy;
    const int rows = min(Step::BLOCK_M, a.len_q - at.first_q);
    const int first_row = Step::WARP_ROWS * lane.warp;
    // The addresses that this lane brings to ldmatrix, for the first piece of each tile
    const SharedAddress q = Q_smem + a_offset<Layout>(lane, first_row);
    const SharedAddress k = K_smem + k_offset<Layout>(lane, 0);
    const SharedAddress v = V_smem + v_offset<Layout>(lane, 0);

    const auto begin_copy = [&](SharedAddress to, GlobalPointer<const T> source,
                                std::int64_t stride, int there) {
        if (a.chunked)
            copy.copy<false, T>(to, source, stride, there, a.head_dim);
        else
            copy.load<T>(to, source, stride, there, a.head_dim, false);
    };
    // Tile n goes where its number says: even ones into the first pair of buffers, odd ones into
    // the second.
    const auto begin_tile = [&](int n) {
        const int first_kv = n * Step::BLOCK_N;
        const std::uint32_t stage = n % 2 * Step::TILE_BYTES;
        begin_copy(K_smem + stage, from.k + first_kv * a.k_strides.token, a.k_strides.token,
                   a.len_kv - first_kv);
        begin_copy(V_smem + stage, from.v + first_kv * a.v_strides.token, a.v_strides.token,
                   a.len_kv - first_kv);
    };

    const int keys = a.visible_keys(at.first_q + rows - 1);
    const int tiles = (keys + Step::BLOCK_N - 1) / Step::BLOCK_N;
    begin_copy(Q_smem, from.q, a.q_strides.token, rows);
    if (tiles > 0) begin_tile(tiles - 1);
    commit_copies();
    wait_copies<0>();
    if (scale.sign != 1.0f) copy.multiply<T>(Q_smem, scale.sign);
    __syncthreads();  // Q and the first tile are here
    std::uint32_t Q[Step::K_STEPS][4];
#pragma unroll
    for (int step = 0; step < Step::K_STEPS; ++step)
        load_matrices(Q[step], Layout::further(q, 2 * step));

    float O[1][Step::COLUMN_TILES][4] = {};
    float m[2] = {minus_infinity(), minus_infinity()}, l[2] = {};
    for (int n = tiles - 1; n >= 0; --n) {
        const int first_kv = n * Step::BLOCK_N;
        const std::uint32_t stage = n % 2 * Step::TILE_BYTES;
        if (n > 0) begin_tile(n - 1);
        commit_copies();
        int visible[1][2];
        visible_from(a, at.first_q + first_row + lane.group, first_kv, visible[0]);
        set_masked_values_aside<T, Step::Copy, Layout, Step::BLOCK_N>(V_smem + stage, copy, lane,
                                                                      visible, O);
        // [scores]
        float S[Step::KEY_TILES][4] = {};
#pragma unroll
        for (int step = 0; step < Step::K_STEPS; ++step)
#pragma unroll
            for (int j = 0; j < Step::KEY_TILES / 2; ++j) {
                std::uint32_t K[4];
                load_matrices(K, Layout::further(k + stage, 2 * step) + j * Step::PIECE_BYTES);
                multiply_add<T>(S[2 * j], Q[step], K[0], K[1]);
                multiply_add<T>(S[2 * j + 1], Q[step], K[2], K[3]);
            }
        // [scores]
        mask_scores(S, lane, visible[0]);
        softmax(S, scale, m, l, O[0]);

        // [weighted-sum]
#pragma unroll
        for (int step = 0; step < Step::K_STEPS; ++step) {
            std::uint32_t P[4];
            pack_weights<T>(P, S[2 * step], S[2 * step + 1]);
#pragma unroll
            for (int j = 0; j < Step::COLUMN_TILES / 2; ++j) {
                std::uint32_t V[4];
                load_matrices_transposed(
                    V, Layout::further(v + stage, 2 * j) + step * Step::PIECE_BYTES);
                multiply_add<T>(O[0][2 * j], P, V[0], V[1]);
                multiply_add<T>(O[0][2 * j + 1], P, V[2], V[3]);
            }
        }
        // [weighted-sum]
        wait_copies<0>();
        __syncthreads();  // the next tile is here, and this one is no longer read
    }
    finish_rows(a, at, lane, first_row + lane.group, scale, m, l, O[0]);
    store_from_registers(a, output_of(a, at), lane, first_row + lane.group, rows, O[0]);
}

template <class T>
constexpr auto CpAsyncStep::kernel() {
    return &cp_async_attention<T>;
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
