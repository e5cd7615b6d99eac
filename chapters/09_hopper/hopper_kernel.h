#pragma once
/// @file
/// The last kernel for long problems: a warp that loads, warpgroups that compute, and tiles that
/// blocks fetch one after the other; with a switch for each idea of the chapter.

#include <type_traits>

#include "chapters/09_hopper/hopper_memory.h"
#include "chapters/09_hopper/load_part.h"
#include "chapters/09_hopper/store_tile.h"
#include "chapters/09_hopper/tile_work.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// Turns of the warpgroups at the tensor cores: barrier 1 + w is warpgroup w's.
template <bool PING_PONG, int WARPGROUPS>
struct Turns {
    int warpgroup;

    /// The first turn is warpgroup 0's.
    __device__ __forceinline__ explicit Turns(int w) : warpgroup(w) {
        if (w == WARPGROUPS - 1) pass();
    }
    __device__ __forceinline__ void wait() const {
        if constexpr (PING_PONG) named_barrier_wait(1 + warpgroup, 2 * 128);
    }
    __device__ __forceinline__ void pass() const {
        if constexpr (PING_PONG) named_barrier_arrive(1 + (warpgroup + 1) % WARPGROUPS, 2 * 128);
    }
    /// Takes the turn that nobody took, so that no barrier is left half full.
    __device__ __forceinline__ void end() const {
        if (warpgroup == 0) wait();
    }
};

/// Which heads and queries the tile of a number is.
template <class Config, class T>
__device__ __forceinline__ TilePosition position_of(const HopperArguments<T>& a, int tile) {
    if (tile >= a.tiles) return {};
    using Order = std::conditional_t<Config::SWITCHES.sections, SectionPosition, BlockPosition>;
    const Order at(a, static_cast<unsigned>(tile), Config::BLOCK_M);
    return {at.batch, at.head_q, at.head_kv, at.first_q};
}

// [produce]
/// What the warp that loads does, by one lane. Of a cluster each block loads its own queries and a
/// part of every block of keys and values.
template <class Config, class T>
__device__ __forceinline__ void produce(const HopperArguments<T>& a,
                                        const HopperMemory<Config>& memory, int block) {
    constexpr int HEAD_DIM = Config::HEAD_DIM, BLOCK_N = Config::BLOCK_N;
    constexpr int CLUSTER = Config::CLUSTER;
    const int clusters = blocks_in_grid() / CLUSTER, own = static_cast<int>(blockIdx.x) / CLUSTER;
    RingPosition<Config::STAGES> here;
    RingPosition<Config::Q_SLOTS> queries;
    int round = 0;
    const auto next_tile = [&] {
        if constexpr (!Config::PERSISTENT) return a.tiles;
        if constexpr (Config::FETCHES_TILES)
            return block == 0 ? clusters + atomic_add(a.next_tile, 1) : a.tiles;
        // Back and forth: who had a long one gets a short one.
        ++round;
        return round * clusters + (round % 2 == 0 ? own : clusters - 1 - own);
    };
    for (int tile = own;; queries.advance()) {
        const auto slot = static_cast<std::uint32_t>(queries.stage);
        wait_phase(memory.q_empty + 8 * slot, queries.parity ^ 1);
        const TilePosition at =
            memory.hand_on(slot, queries.parity, position_of<Config>(a, tile), block);
        if (at.first_q == TilePosition::NONE) {
            arrive(memory.q_full + 8 * slot);
            return;
        }
        const KeyBlocks<BLOCK_N> blocks(a, at.first_q, Config::BLOCK_M);
        load_queries<HEAD_DIM, Config::WARPGROUPS>(a, at, memory.q + slot * Config::Q_BYTES,
                                                   memory.q_full + 8 * slot, block, CLUSTER);
        if constexpr (!Config::SWITCHES.late_fetch) tile = next_tile();
        // What one step needs travels together: keys of block n, values of block n + 1.
        for (int n = blocks.count - 1; n >= -1 && blocks.count > 0; --n, here.advance()) {
            const bool keys = n >= 0, values = n + 1 < blocks.count;
            const auto stage = static_cast<std::uint32_t>(here.stage);
            const SharedAddress K_smem = memory.ring + stage * Config::STAGE_BYTES;
            const SharedAddress V_smem = K_smem + Config::KV_BYTES;
            const SharedAddress barrier = memory.full + 8 * stage;
            wait_phase(memory.empty + 8 * stage, here.parity ^ 1);
            arrive_expecting(barrier, keys && values ? Config::STAGE_BYTES : Config::KV_BYTES);
            if (keys)
                load_part<HEAD_DIM, BLOCK_N, CLUSTER>(K_smem, a.k_map, a.k_steps, barrier,
                                                      n * BLOCK_N, at.head_kv, at.batch, block);
            if (values)
                load_part<HEAD_DIM, BLOCK_N, CLUSTER>(V_smem, a.v_map, a.v_steps, barrier,
                                                      (n + 1) * BLOCK_N, at.head_kv, at.batch,
                                                      block);
        }
        if constexpr (Config::SWITCHES.late_fetch) tile = next_tile();
    }
}
// [produce]

// [consume]
/// What warpgroup w of those of a block that compute does. The blocks of a cluster take turns at
/// the queries of a tile, 64 at a time, so that neither waits long for the other at a diagonal.
template <class Config, class T>
__device__ __forceinline__ void consume(const HopperArguments<T>& a,
                                        const HopperMemory<Config>& memory, int w, int block) {
    constexpr int WARPGROUPS = Config::WARPGROUPS, BLOCK_N = Config::BLOCK_N;
    const Lane lane;
    const int own_rows = 64 * (Config::CLUSTER * w + block);  // counted from the tile's first
    const int first_row = own_rows + 16 * (lane.warp % 4);
    const int own_barrier = 1 + WARPGROUPS + w;
    const bool leader = threadIdx.x % 128 == 0;
    const FoldedScale scale(a.scale);
    ConsumerRing<Config> ring(memory, lane);
    Turns<Config::SWITCHES.ping_pong, WARPGROUPS> turns(w);
    Tracer<Config::SWITCHES.traced> trace(a.trace, w, leader);
    RingPosition<Config::Q_SLOTS> queries;
    // O leaves by way of the queries' place, which is free again when TMA has read it.
    int leaving = -1;  // slot of the tile before this one, until then
    const auto hand_back_queries = [&] {
        if (leader && leaving >= 0) {
            wait_stores_read<0>();
            memory.release_queries(static_cast<std::uint32_t>(leaving));
        }
        leaving = -1;
    };

    for (;; queries.advance()) {
        const auto slot = static_cast<std::uint32_t>(queries.stage);
        wait_phase(memory.q_full + 8 * slot, queries.parity);
        const TilePosition at = memory.position(slot);
        if (at.first_q == TilePosition::NONE) break;
        trace.begin_tile();
        const KeyBlocks<BLOCK_N> blocks(a, at.first_q, Config::BLOCK_M);
        const KeyBlocks<BLOCK_N> own = Config::SWITCHES.own_diagonal
                                           ? KeyBlocks<BLOCK_N>(a, at.first_q + own_rows, 64)
                                           : blocks;
        const SharedAddress own_q = memory.q + slot * Config::Q_BYTES +
                                    static_cast<std::uint32_t>(w) * Config::Q_TILE_BYTES;
        apply_sign<Config::HEAD_DIM, T>(own_q, scale.sign, own_barrier);

        TileWork<Config, T> work(scale);
        work.run(a, lane, at.first_q + first_row + lane.group, blocks, own, by_rows(own_q), ring,
                 turns, trace, hand_back_queries);
        hand_back_queries();  // where there was nothing to see

        trace.mark(TracePhase::finish);
        if constexpr (Config::SWITCHES.store_by_tma) {
            finish_and_stage(a, at, lane, first_row, work.reference, work.O, own_q);
            store_tile<Config::HEAD_DIM>(a, at, lane, first_row, own_q, own_barrier);
        } else {
            finish_and_store(a, at, lane, first_row, work.reference, work.O);
            named_barrier_wait(own_barrier, 128);  // all four warps have read the tile's position
        }
        leaving = queries.stage;
        if constexpr (Config::Q_SLOTS == 1) hand_back_queries();  // the next ones wait for it
        trace.mark(TracePhase::end);
    }
    if (leader) wait_stores_read<0>();  // the memory must live as long as it is read
    turns.end();
}
// [consume]

// [kernel]
/// Grid: any number of blocks in x if PERSISTENT, in clusters of CLUSTER; else a.tiles. Block:
/// THREADS, the first 128 of which load. Shared memory: SHARED_BYTES.
template <class Config, class T>
__global__ void __launch_bounds__(Config::THREADS, 1)
    hopper_attention(const __grid_constant__ HopperArguments<T> a) {
    const HopperMemory<Config> memory;
    const int warpgroup = warpgroup_index();
    const int block = Config::CLUSTER == 1 ? 0 : block_in_cluster();
    if (threadIdx.x == 0) {
        memory.init();
        prefetch_maps(a);
    }
    if constexpr (Config::CLUSTER == 1)
        __syncthreads();
    else
        cluster_barrier();
    let_next_grid_begin();  // whose blocks find no room before one of these ends, if there are many
    wait_for_grids_before();
    if (warpgroup == 0) {
        if constexpr (Config::SWITCHES.move_registers)
            decrease_registers<Config::PRODUCER_REGISTERS>();
        if (threadIdx.x < 32 && one_lane()) produce<Config>(a, memory, block);
    } else {
        if constexpr (Config::SWITCHES.move_registers)
            increase_registers<Config::CONSUMER_REGISTERS>();
        consume<Config>(a, memory, warpgroup - 1, block);
    }
    if constexpr (Config::CLUSTER > 1) cluster_barrier();  // others may still write here
}
// [kernel]

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
