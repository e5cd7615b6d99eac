#pragma once
/// @file
/// The last kernel for long problems: a warp that loads, warpgroups that compute, and tiles that
/// blocks fetch one after the other; with a switch for each idea of the chapter.

#include "chapters/09_hopper/load_tile.h"
#include "chapters/09_hopper/store_tile.h"
#include "chapters/09_hopper/tile_work.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// The barriers and tiles of a block in shared memory.
template <class Config>
struct HopperMemory {
    static constexpr int STAGES = Config::STAGES, Q_SLOTS = Config::Q_SLOTS;

    SharedAddress q = shared_address(0), ring = shared_address(Config::RING);
    SharedAddress q_full = shared_address(Config::BARRIERS), q_empty = q_full + 8 * Q_SLOTS;
    SharedAddress full = q_empty + 8 * Q_SLOTS, empty = full + 8 * STAGES;
    SharedAddress tile_numbers = shared_address(Config::TILE_NUMBERS);

    /// By one thread, before a barrier of the block.
    __device__ __forceinline__ void init() const {
        for (std::uint32_t i = 0; i < Q_SLOTS; ++i) {
            init_barrier(q_full + 8 * i, 1);
            init_barrier(q_empty + 8 * i, Config::WARPGROUPS);
        }
        for (std::uint32_t i = 0; i < STAGES; ++i) {
            init_barrier(full + 8 * i, 1);
            init_barrier(empty + 8 * i, 4 * Config::WARPGROUPS);  // every warp for itself
        }
        publish_barriers();
    }
};

/// The stages of K and V as a warpgroup sees them arrive.
template <class Config>
struct ConsumerRing {
    SharedAddress full, empty;
    Matrix first_keys, first_values;
    bool speaks;  ///< one lane of the warp
    RingPosition<Config::STAGES> here{};

    __device__ __forceinline__ ConsumerRing(const HopperMemory<Config>& memory, const Lane& lane)
        : full(memory.full),
          empty(memory.empty),
          first_keys(by_rows(memory.ring)),
          first_values(by_columns(memory.ring + Config::KV_BYTES, box_bytes(Config::BLOCK_N))),
          speaks(lane.index == 0) {}

    __device__ __forceinline__ std::uint32_t stage() const {
        return static_cast<std::uint32_t>(here.stage);
    }
    __device__ __forceinline__ Matrix keys() const {
        return first_keys + stage() * (Config::STAGE_BYTES / 16);
    }
    __device__ __forceinline__ Matrix values() const {
        return first_values + stage() * (Config::STAGE_BYTES / 16);
    }
    __device__ __forceinline__ void wait() const { wait_phase(full + 8 * stage(), here.parity); }
    /// Every warp for itself: where blocks are skipped no product keeps the four warps of a
    /// warpgroup together, and one that falls behind by a whole round would wait for ever. For the
    /// same reason all lanes of the warp must have come by: after a product they have, elsewhere
    /// warp_barrier() sees to it.
    __device__ __forceinline__ void release() {
        if (speaks) arrive(empty + 8 * stage());
        here.advance();
    }
};

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

/// Which heads and queries a tile is.
template <class Config, class T>
__device__ __forceinline__ auto position_of(const Arguments<T>& a, int tile) {
    if constexpr (Config::SWITCHES.sections)
        return SectionPosition(a, static_cast<unsigned>(tile), Config::BLOCK_M);
    else
        return BlockPosition(a, static_cast<unsigned>(tile), Config::BLOCK_M);
}

// [produce]
/// What the warp that loads does, by one lane.
template <class Config, class T>
__device__ __forceinline__ void produce(const HopperArguments<T>& a,
                                        const HopperMemory<Config>& memory) {
    constexpr int HEAD_DIM = Config::HEAD_DIM, BLOCK_N = Config::BLOCK_N;
    RingPosition<Config::STAGES> here;
    RingPosition<Config::Q_SLOTS> queries;
    int round = 0;
    const auto next_tile = [&] {
        if constexpr (Config::FETCHES_TILES) return blocks_in_grid() + atomic_add(a.next_tile, 1);
        if constexpr (!Config::PERSISTENT) return a.tiles;
        // Back and forth: who had a long one gets a short one.
        const int blocks = blocks_in_grid(), own = static_cast<int>(blockIdx.x);
        ++round;
        return round * blocks + (round % 2 == 0 ? own : blocks - 1 - own);
    };
    for (int tile = static_cast<int>(blockIdx.x);; queries.advance()) {
        const auto slot = static_cast<std::uint32_t>(queries.stage);
        wait_phase(memory.q_empty + 8 * slot, queries.parity ^ 1);
        store_shared(memory.tile_numbers + 4 * slot, tile);  // travels with the queries
        if (tile >= a.tiles) {
            arrive(memory.q_full + 8 * slot);
            return;
        }
        const auto at = position_of<Config>(a, tile);
        const KeyBlocks<BLOCK_N> blocks(a, at.first_q, Config::BLOCK_M);
        load_queries<HEAD_DIM, Config::WARPGROUPS>(a, at, memory.q + slot * Config::Q_BYTES,
                                                   memory.q_full + 8 * slot);
        if constexpr (!Config::SWITCHES.late_fetch) tile = next_tile();
        // What one step needs travels together: keys of block n, values of block n + 1.
        for (int n = blocks.count - 1; n >= -1 && blocks.count > 0; --n, here.advance()) {
            const bool keys = n >= 0, values = n + 1 < blocks.count;
            const auto stage = static_cast<std::uint32_t>(here.stage);
            const SharedAddress K_smem = memory.ring + stage * Config::STAGE_BYTES;
            const SharedAddress barrier = memory.full + 8 * stage;
            wait_phase(memory.empty + 8 * stage, here.parity ^ 1);
            arrive_expecting(barrier, keys && values ? Config::STAGE_BYTES : Config::KV_BYTES);
            if (keys) load_keys<HEAD_DIM, BLOCK_N>(a, at, K_smem, barrier, n);
            if (values)
                load_values<HEAD_DIM, BLOCK_N>(a, at, K_smem + Config::KV_BYTES, barrier, n + 1);
        }
        if constexpr (Config::SWITCHES.late_fetch) tile = next_tile();
    }
}
// [produce]

// [consume]
/// What warpgroup w of those that compute does.
template <class Config, class T>
__device__ __forceinline__ void consume(const HopperArguments<T>& a,
                                        const HopperMemory<Config>& memory, int w) {
    constexpr int WARPGROUPS = Config::WARPGROUPS, BLOCK_N = Config::BLOCK_N;
    const Lane lane;
    const int first_row = 64 * w + 16 * (lane.warp % 4);
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
            arrive(memory.q_empty + 8 * static_cast<std::uint32_t>(leaving));
        }
        leaving = -1;
    };

    for (;; queries.advance()) {
        const auto slot = static_cast<std::uint32_t>(queries.stage);
        wait_phase(memory.q_full + 8 * slot, queries.parity);
        const int tile = uniform(load_shared<int>(memory.tile_numbers + 4 * slot));
        if (tile >= a.tiles) break;
        trace.begin_tile(tile);
        const auto at = position_of<Config>(a, tile);
        const KeyBlocks<BLOCK_N> blocks(a, at.first_q, Config::BLOCK_M);
        const KeyBlocks<BLOCK_N> own =
            Config::SWITCHES.own_diagonal ? KeyBlocks<BLOCK_N>(a, at.first_q + 64 * w, 64) : blocks;
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
            named_barrier_wait(own_barrier, 128);  // all four warps have read the tile's number
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
/// Grid: any number of blocks in x if PERSISTENT; else a.tiles. Block: THREADS, the first 128 of
/// which load. Shared memory: SHARED_BYTES.
template <class Config, class T>
__global__ void __launch_bounds__(Config::THREADS, 1)
    hopper_attention(const __grid_constant__ HopperArguments<T> a) {
    const HopperMemory<Config> memory;
    const int warpgroup = warpgroup_index();
    if (threadIdx.x == 0) {
        memory.init();
        prefetch_maps(a);
    }
    __syncthreads();
    let_next_grid_begin();  // whose blocks find no room before one of these ends, if there are many
    wait_for_grids_before();
    if (warpgroup == 0) {
        if constexpr (Config::SWITCHES.move_registers)
            decrease_registers<Config::PRODUCER_REGISTERS>();
        if (threadIdx.x < 32 && one_lane()) produce<Config>(a, memory);
    } else {
        if constexpr (Config::SWITCHES.move_registers)
            increase_registers<Config::CONSUMER_REGISTERS>();
        consume<Config>(a, memory, warpgroup - 1);
    }
}
// [kernel]

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
