#pragma once
/// @file
/// Step 1: TMA and warpgroup products. One thread loads tiles that all wait for; products read both
/// operands where they lie. All threads have one role.

#include "chapters/09_hopper/finish_rows.h"
#include "chapters/09_hopper/ladder_sizes.h"
#include "chapters/09_hopper/load_tile.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// Sizes of the step.
struct WgmmaStep : HopperSizes<2, 128, 1> {
    static constexpr int THREADS = 128 * WARPGROUPS;
    static constexpr std::size_t SHARED_BYTES = BARRIERS + 2 * 8;
    static constexpr bool PERSISTENT = false, FETCHES_TILES = false;
    /// The kernel function for an element type.
    template <class T>
    static constexpr auto kernel();
};

/// Grid: tiles in x. Block: THREADS. Shared memory: SHARED_BYTES.
template <class T>
__global__ void __launch_bounds__(WgmmaStep::THREADS, 1)
    wgmma_attention(const __grid_constant__ HopperArguments<T> a) {
    using Step = WgmmaStep;
    constexpr int HEAD_DIM = Step::HEAD_DIM, BLOCK_N = Step::BLOCK_N;
    const SharedAddress Q_smem = shared_address(0), K_smem = Q_smem + Step::Q_BYTES;
    const SharedAddress V_smem = K_smem + Step::KV_BYTES;
    const SharedAddress q_full = shared_address(Step::BARRIERS), full = q_full + 8;
    const int warpgroup = warpgroup_index();
    const Lane lane;
    if (threadIdx.x == 0) {
        init_barrier(q_full, 1);
        init_barrier(full, 1);
        publish_barriers();
    }
    __syncthreads();

    const SectionPosition at(a, blockIdx.x, Step::BLOCK_M);
    const KeyBlocks<BLOCK_N> blocks(a, at.first_q, Step::BLOCK_M);
    const int first_row = 64 * warpgroup + 16 * (lane.warp % 4);
    const SharedAddress own_q = Q_smem + static_cast<std::uint32_t>(warpgroup) * Step::Q_TILE_BYTES;
    const Matrix Q = by_rows(own_q), K = by_rows(K_smem), V = by_columns(V_smem, Step::KV_BYTES);
    float O[Step::COLUMN_TILES][4] = {};
    RowReference<Rescale::always> reference{FoldedScale(a.scale)};

    if (threadIdx.x == 0) load_queries<HEAD_DIM, Step::WARPGROUPS>(a, at, Q_smem, q_full);
    wait_phase(q_full, 0);
    apply_sign<HEAD_DIM, T>(own_q, reference.scale.sign, 1 + warpgroup);
    // [loop]
    unsigned parity = 0;
    for (int n = blocks.count - 1; n >= 0; --n) {
        if (threadIdx.x == 0) {
            arrive_expecting(full, Step::STAGE_BYTES);
            load_keys<HEAD_DIM, BLOCK_N>(a, at, K_smem, full, n);
            load_values<HEAD_DIM, BLOCK_N>(a, at, V_smem, full, n);
        }
        wait_phase(full, parity);
        parity ^= 1;

        float S[Step::KEY_TILES][4];
        begin_scores<T, HEAD_DIM, BLOCK_N>(S, Q, Step::Q_TILE_BYTES, K);
        wait_products<0>();
        pin(S);
        if (n >= blocks.first_masked) {
            int visible[2];
            visible_from(a, at.first_q + first_row + lane.group, n * BLOCK_N, visible);
            mask_scores(S, lane, visible);
        }
        reference.follow(S);
        reference.correct(O);
        reference.weigh(S);
        std::uint32_t P[BLOCK_N / 16][4];
        pack_all<T, BLOCK_N>(P, S);
        begin_weighted_sum<T, HEAD_DIM, BLOCK_N>(O, P, V);
        wait_products<0>();
        pin(O);
        pin(P);
        __syncthreads();  // nobody reads K and V any more
    }
    // [loop]
    finish_and_store(a, at, lane, first_row, reference, O);
}

template <class T>
constexpr auto WgmmaStep::kernel() {
    return &wgmma_attention<T>;
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
