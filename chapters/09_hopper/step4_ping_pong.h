#pragma once
/// @file
/// Step 4: ping-pong. Warpgroups take turns at the tensor cores, so that one multiplies while the
/// other computes exponentials.

#include "chapters/09_hopper/finish_rows.h"
#include "chapters/09_hopper/ladder_sizes.h"
#include "chapters/09_hopper/load_tile.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// Sizes of the step.
struct PingPongStep : HopperSizes<2, 128, 3> {
    static constexpr int THREADS = 128 * (WARPGROUPS + 1);
    static constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240;
    static constexpr std::size_t SHARED_BYTES = BARRIERS + (1 + 2 * STAGES) * 8;
    static constexpr bool PERSISTENT = false, FETCHES_TILES = false;
    /// The kernel function for an element type.
    template <class T>
    static constexpr auto kernel();
};

/// Grid: tiles in x. Block: THREADS, the first 128 of which load. Shared memory: SHARED_BYTES.
template <class T>
__global__ void __launch_bounds__(PingPongStep::THREADS, 1)
    ping_pong_attention(const __grid_constant__ HopperArguments<T> a) {
    using Step = PingPongStep;
    constexpr int HEAD_DIM = Step::HEAD_DIM, BLOCK_N = Step::BLOCK_N, STAGES = Step::STAGES;
    const SharedAddress Q_smem = shared_address(0), ring = Q_smem + Step::Q_BYTES;
    // [barriers]
    const SharedAddress q_full = shared_address(Step::BARRIERS);
    const SharedAddress full = q_full + 8, empty = full + 8 * STAGES;
    const int warpgroup = warpgroup_index();
    if (threadIdx.x == 0) {
        init_barrier(q_full, 1);
        for (std::uint32_t stage = 0; stage < STAGES; ++stage) {
            init_barrier(full + 8 * stage, 1);
            init_barrier(empty + 8 * stage, 4 * Step::WARPGROUPS);  // every warp for itself
        }
        publish_barriers();
    }
    __syncthreads();
    // [barriers]

    const SectionPosition at(a, blockIdx.x, Step::BLOCK_M);
    const KeyBlocks<BLOCK_N> blocks(a, at.first_q, Step::BLOCK_M);
    RingPosition<STAGES> here;
    const auto stage = [&] { return static_cast<std::uint32_t>(here.stage); };

    // [producer]
    if (warpgroup == 0) {
        decrease_registers<Step::PRODUCER_REGISTERS>();
        if (threadIdx.x < 32 && one_lane()) {
            load_queries<HEAD_DIM, Step::WARPGROUPS>(a, at, Q_smem, q_full);
            // What one step needs travels together: the keys of block n and the values of block
            // n + 1. The first stage has no values, the last no keys.
            for (int n = blocks.count - 1; n >= -1 && blocks.count > 0; --n, here.advance()) {
                const bool keys = n >= 0, values = n + 1 < blocks.count;
                const SharedAddress barrier = full + 8 * stage();
                const SharedAddress K_smem = ring + stage() * Step::STAGE_BYTES;
                // A ring begins empty: the phase before the first counts as over.
                wait_phase(empty + 8 * stage(), here.parity ^ 1);
                arrive_expecting(barrier, keys && values ? Step::STAGE_BYTES : Step::KV_BYTES);
                if (keys) load_keys<HEAD_DIM, BLOCK_N>(a, at, K_smem, barrier, n);
                if (values)
                    load_values<HEAD_DIM, BLOCK_N>(a, at, K_smem + Step::KV_BYTES, barrier, n + 1);
            }
        }
        return;
    }
    // [producer]

    increase_registers<Step::CONSUMER_REGISTERS>();
    const Lane lane;
    const int w = warpgroup - 1, first_row = 64 * w + 16 * (lane.warp % 4);
    const SharedAddress own_q = Q_smem + static_cast<std::uint32_t>(w) * Step::Q_TILE_BYTES;
    const Matrix Q = by_rows(own_q), K = by_rows(ring);
    const Matrix V = by_columns(ring + Step::KV_BYTES, Step::KV_BYTES);
    float O[Step::COLUMN_TILES][4] = {};
    RowReference<Rescale::always> reference{FoldedScale(a.scale)};

    // [turns]
    // Barrier 1 + w is warpgroup w's turn: one warpgroup waits there, the one before it arrives.
    constexpr int WARPGROUPS = Step::WARPGROUPS;
    const auto wait_turn = [&] { named_barrier_wait(1 + w, 2 * 128); };
    const auto pass_turn = [&] { named_barrier_arrive(1 + (w + 1) % WARPGROUPS, 2 * 128); };
    if (w == WARPGROUPS - 1) pass_turn();  // the first turn is warpgroup 0's
    // [turns]

    wait_phase(q_full, 0);
    apply_sign<HEAD_DIM, T>(own_q, reference.scale.sign, 1 + WARPGROUPS + w);
    float S[Step::KEY_TILES][4];
    std::uint32_t P[BLOCK_N / 16][4];
    const auto wait_full = [&] { wait_phase(full + 8 * stage(), here.parity); };
    const auto release = [&] {
        if (lane.index == 0) arrive(empty + 8 * stage());
        here.advance();
    };
    const auto mask = [&](int n) {
        int visible[2];
        visible_from(a, at.first_q + first_row + lane.group, n * BLOCK_N, visible);
        mask_scores(S, lane, visible);
    };
    // [consumer]
    // Block n: scores and weights. Block n + 1: the weighted sum, meanwhile.
    const auto step = [&](auto masked, int n) {
        const Matrix further = stage() * (Step::STAGE_BYTES / 16);
        wait_full();
        wait_turn();
        begin_scores<T, HEAD_DIM, BLOCK_N>(S, Q, Step::Q_TILE_BYTES, K + further);
        begin_weighted_sum<T, HEAD_DIM, BLOCK_N>(O, P, V + further);
        pass_turn();
        wait_products<1>();  // S is here; O is not
        pin(S);
        if constexpr (decltype(masked)::value) mask(n);
        reference.follow(S);
        reference.weigh(S);
        wait_products<0>();
        pin(O);
        pin(P);
        release();
        reference.correct(O);
        pack_all<T, BLOCK_N>(P, S);
    };
    int n = blocks.count - 1;
    if (n >= 0) {
        wait_full();
        begin_scores<T, HEAD_DIM, BLOCK_N>(S, Q, Step::Q_TILE_BYTES, K);
        wait_products<0>();
        pin(S);
        release();
        mask(n);
        reference.follow(S);
        reference.weigh(S);
        reference.correct(O);
        pack_all<T, BLOCK_N>(P, S);
        for (--n; n >= blocks.first_masked; --n) step(std::true_type{}, n);
        for (; n >= 0; --n) step(std::false_type{}, n);
        wait_full();
        begin_weighted_sum<T, HEAD_DIM, BLOCK_N>(O, P, V + stage() * (Step::STAGE_BYTES / 16));
        wait_products<0>();
        pin(O);
        pin(P);
    }
    // [consumer]
    if (w == 0) wait_turn();  // the turn that nobody took: no barrier is left half full
    finish_and_store(a, at, lane, first_row, reference, O);
}

template <class T>
constexpr auto PingPongStep::kernel() {
    return &ping_pong_attention<T>;
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
