#pragma once
/// @file
/// Step 7: persistence. As many blocks as the GPU has multiprocessors fetch one tile after the
/// other; the end of a tile hides behind the beginning of the next. O leaves by TMA.

#include "chapters/09_hopper/ladder_sizes.h"
#include "chapters/09_hopper/load_tile.h"
#include "chapters/09_hopper/store_tile.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// Sizes of the step.
struct PersistentStep : HopperSizes<4, 64, 6> {
    static constexpr int THREADS = 128 * (WARPGROUPS + 1);
    static constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 112;
    static constexpr int Q_SLOTS = 2;  ///< tiles of queries in shared memory
    static constexpr std::uint32_t RING = Q_SLOTS * Q_BYTES;
    static constexpr std::uint32_t BARRIERS = RING + STAGES * STAGE_BYTES;
    static constexpr std::uint32_t TILE_NUMBERS = BARRIERS + 2 * (Q_SLOTS + STAGES) * 8;
    static constexpr std::size_t SHARED_BYTES = TILE_NUMBERS + Q_SLOTS * 4;
    static constexpr bool PERSISTENT = true, FETCHES_TILES = true;
    /// The kernel function for an element type.
    template <class T>
    static constexpr auto kernel();
};

/// Grid: any number of blocks in x. Block: THREADS, the first 128 of which load. Shared memory:
/// SHARED_BYTES.
template <class T>
__global__ void __launch_bounds__(PersistentStep::THREADS, 1)
    persistent_attention(const __grid_constant__ HopperArguments<T> a) {
    using Step = PersistentStep;
    constexpr int HEAD_DIM = Step::HEAD_DIM, BLOCK_N = Step::BLOCK_N, STAGES = Step::STAGES;
    constexpr int WARPGROUPS = Step::WARPGROUPS, Q_SLOTS = Step::Q_SLOTS;
    const SharedAddress Q_smem = shared_address(0), ring = shared_address(Step::RING);
    const SharedAddress q_full = shared_address(Step::BARRIERS), q_empty = q_full + 8 * Q_SLOTS;
    const SharedAddress full = q_empty + 8 * Q_SLOTS, empty = full + 8 * STAGES;
    const SharedAddress tile_numbers = shared_address(Step::TILE_NUMBERS);
    const int warpgroup = warpgroup_index();
    if (threadIdx.x == 0) {
        for (std::uint32_t i = 0; i < Q_SLOTS; ++i) {
            init_barrier(q_full + 8 * i, 1);
            init_barrier(q_empty + 8 * i, WARPGROUPS);
        }
        for (std::uint32_t i = 0; i < STAGES; ++i) {
            init_barrier(full + 8 * i, 1);
            init_barrier(empty + 8 * i, 4 * WARPGROUPS);  // every warp for itself
        }
        publish_barriers();
    }
    __syncthreads();

    RingPosition<STAGES> here;
    RingPosition<Q_SLOTS> queries;
    const auto stage = [&] { return static_cast<std::uint32_t>(here.stage); };
    const auto slot = [&] { return static_cast<std::uint32_t>(queries.stage); };

    // [producer]
    if (warpgroup == 0) {
        decrease_registers<Step::PRODUCER_REGISTERS>();
        if (threadIdx.x < 32 && one_lane()) {
            int tile = static_cast<int>(blockIdx.x);
            for (;; queries.advance()) {
                wait_phase(q_empty + 8 * slot(), queries.parity ^ 1);
                store_shared(tile_numbers + 4 * slot(), tile);  // travels with the queries
                if (tile >= a.tiles) {
                    arrive(q_full + 8 * slot());
                    break;
                }
                const SectionPosition at(a, static_cast<unsigned>(tile), Step::BLOCK_M);
                const KeyBlocks<BLOCK_N> blocks(a, at.first_q, Step::BLOCK_M);
                load_queries<HEAD_DIM, WARPGROUPS>(a, at, Q_smem + slot() * Step::Q_BYTES,
                                                   q_full + 8 * slot());
                for (int n = blocks.count - 1; n >= -1 && blocks.count > 0; --n, here.advance()) {
                    const bool keys = n >= 0, values = n + 1 < blocks.count;
                    const SharedAddress barrier = full + 8 * stage();
                    const SharedAddress K_smem = ring + stage() * Step::STAGE_BYTES;
                    wait_phase(empty + 8 * stage(), here.parity ^ 1);
                    arrive_expecting(barrier, keys && values ? Step::STAGE_BYTES : Step::KV_BYTES);
                    if (keys) load_keys<HEAD_DIM, BLOCK_N>(a, at, K_smem, barrier, n);
                    if (values)
                        load_values<HEAD_DIM, BLOCK_N>(a, at, K_smem + Step::KV_BYTES, barrier,
                                                       n + 1);
                }
                // Not before: who begins with a long tile would also take the next one from others.
                tile = blocks_in_grid() + atomic_add(a.next_tile, 1);
            }
        }
        return;
    }
    // [producer]

    increase_registers<Step::CONSUMER_REGISTERS>();
    const Lane lane;
    const int w = warpgroup - 1, first_row = 64 * w + 16 * (lane.warp % 4);
    const int own_barrier = 1 + w;
    const bool leader = threadIdx.x % 128 == 0;
    const SharedAddress own_q = Q_smem + static_cast<std::uint32_t>(w) * Step::Q_TILE_BYTES;
    const Matrix K = by_rows(ring), V = by_columns(ring + Step::KV_BYTES, Step::KV_BYTES);
    const FoldedScale scale(a.scale);
    const auto wait_full = [&] { wait_phase(full + 8 * stage(), here.parity); };
    const auto release = [&] {
        if (lane.index == 0) arrive(empty + 8 * stage());
        here.advance();
    };
    // O leaves by way of the queries' place, which is free again when TMA has read it.
    int leaving = -1;  // slot of the tile before this one, until then
    const auto hand_back_queries = [&] {
        if (leader && leaving >= 0) {
            wait_stores_read<0>();
            arrive(q_empty + 8 * static_cast<std::uint32_t>(leaving));
        }
        leaving = -1;
    };

    for (;; queries.advance()) {
        wait_phase(q_full + 8 * slot(), queries.parity);
        const int tile = uniform(load_shared<int>(tile_numbers + 4 * slot()));
        if (tile >= a.tiles) break;
        const SectionPosition at(a, static_cast<unsigned>(tile), Step::BLOCK_M);
        const KeyBlocks<BLOCK_N> blocks(a, at.first_q, Step::BLOCK_M);
        const KeyBlocks<BLOCK_N> own(a, at.first_q + 64 * w, 64);
        const SharedAddress tile_q = own_q + slot() * Step::Q_BYTES;
        const Matrix Q = by_rows(tile_q);
        apply_sign<HEAD_DIM, T>(tile_q, scale.sign, own_barrier);

        float S[Step::KEY_TILES][4], O[Step::COLUMN_TILES][4] = {};
        std::uint32_t P[BLOCK_N / 16][4];
        RowReference<Rescale::always> reference(scale);
        const auto mask = [&](int n) {
            int visible[2];
            visible_from(a, at.first_q + first_row + lane.group, n * BLOCK_N, visible);
            mask_scores(S, lane, visible);
        };
        const auto step = [&](auto masked, int n) {
            const Matrix further = stage() * (Step::STAGE_BYTES / 16);
            wait_full();
            begin_scores<T, HEAD_DIM, BLOCK_N>(S, Q, Step::Q_TILE_BYTES, K + further);
            begin_weighted_sum<T, HEAD_DIM, BLOCK_N>(O, P, V + further);
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
        for (; n >= own.count; --n) {  // for others only
            wait_full();
            warp_barrier();  // all lanes have seen the phase: no product keeps them together here
            release();
        }
        if (n >= 0) {
            wait_full();
            begin_scores<T, HEAD_DIM, BLOCK_N>(S, Q, Step::Q_TILE_BYTES,
                                               K + stage() * (Step::STAGE_BYTES / 16));
            wait_products<0>();
            pin(S);
            release();
            mask(n);
            reference.follow(S);
            reference.weigh(S);
            reference.correct(O);
            pack_all<T, BLOCK_N>(P, S);
            hand_back_queries();
            for (--n; n >= own.first_masked; --n) step(std::true_type{}, n);
            for (; n >= 0; --n) step(std::false_type{}, n);
            wait_full();
            begin_weighted_sum<T, HEAD_DIM, BLOCK_N>(O, P, V + stage() * (Step::STAGE_BYTES / 16));
            wait_products<0>();
            pin(O);
            pin(P);
            release();
        } else if (blocks.count > 0) {
            wait_full();  // the last stage, which has values only
            warp_barrier();
            release();
        }
        hand_back_queries();

        // [store]
        finish_and_stage(a, at, lane, first_row, reference, O, tile_q);
        store_tile<HEAD_DIM>(a, at, lane, first_row, tile_q, own_barrier);
        leaving = queries.stage;
        // [store]
    }
    if (leader) wait_stores_read<0>();  // the memory must live as long as it is read
}

template <class T>
constexpr auto PersistentStep::kernel() {
    return &persistent_attention<T>;
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
