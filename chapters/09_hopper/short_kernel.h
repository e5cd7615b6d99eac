#pragma once
/// @file
/// The last kernel for short problems: one tile to a block, several small blocks to a
/// multiprocessor, so that the beginning and the end of one hide behind the others. No warp only
/// loads: thread 0 refills the ring between two steps.

#include "chapters/09_hopper/load_tile.h"
#include "chapters/09_hopper/store_tile.h"
#include "chapters/09_hopper/tile_work.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// Sizes of the kernel.
/// @tparam BLOCKS_PER_SM that registers and shared memory are to allow
template <int HEAD_DIM_, int WARPGROUPS_, int BLOCK_N_, int STAGES_, int BLOCKS_PER_SM_,
          HopperSwitches SWITCHES_ = HopperSwitches{}>
struct ShortConfig {
    static constexpr int HEAD_DIM = HEAD_DIM_, WARPGROUPS = WARPGROUPS_, BLOCK_N = BLOCK_N_;
    static constexpr int STAGES = STAGES_, BLOCKS_PER_SM = BLOCKS_PER_SM_;
    static constexpr int BLOCK_M = 64 * WARPGROUPS, THREADS = 128 * WARPGROUPS;
    static constexpr int KEY_TILES = BLOCK_N / 8, COLUMN_TILES = HEAD_DIM / 8;
    static constexpr HopperSwitches SWITCHES = SWITCHES_;
    static constexpr Rescale RESCALE = SWITCHES.rescale;
    static constexpr bool PERSISTENT = false, FETCHES_TILES = false;
    static constexpr std::uint32_t Q_TILE_BYTES = 64 * 2 * HEAD_DIM;  ///< of a warpgroup
    static constexpr std::uint32_t Q_BYTES = WARPGROUPS * Q_TILE_BYTES, Q_BOX_BYTES = 64 * 128;
    static constexpr std::uint32_t KV_BYTES = BLOCK_N * 2 * HEAD_DIM, STAGE_BYTES = 2 * KV_BYTES;
    static constexpr std::uint32_t BARRIERS = Q_BYTES + STAGES * STAGE_BYTES;
    static constexpr std::size_t SHARED_BYTES = BARRIERS + (1 + 2 * STAGES) * 8;
    /// A stage is refilled so many steps after it was released: by then all warpgroups have. With
    /// two stages there is no time for that.
    static constexpr int LAG = STAGES > 2 ? 2 : 1;
};

/// The stages of K and V, which thread 0 fills while it uses them.
template <class Config, class T>
struct SelfServiceRing {
    static constexpr int STAGES = Config::STAGES;

    const HopperArguments<T>& a;
    SectionPosition at;
    int blocks;  ///< of keys: there are so many stages to come, and one
    SharedAddress ring = shared_address(Config::Q_BYTES);
    SharedAddress full = shared_address(Config::BARRIERS + 8), empty = full + 8 * STAGES;
    /// What comes next into the stage that is refilled: counted by thread 0.
    int next = STAGES - Config::LAG;
    RingPosition<STAGES> here{};

    __device__ __forceinline__ std::uint32_t stage() const {
        return static_cast<std::uint32_t>(here.stage);
    }
    __device__ __forceinline__ Matrix keys() const {
        return by_rows(ring) + stage() * (Config::STAGE_BYTES / 16);
    }
    __device__ __forceinline__ Matrix values() const {
        return by_columns(ring + Config::KV_BYTES, box_bytes(Config::BLOCK_N)) +
               stage() * (Config::STAGE_BYTES / 16);
    }
    __device__ __forceinline__ void wait() const { wait_phase(full + 8 * stage(), here.parity); }

    // [refill]
    /// Begins to load what is i-th in turn: keys of block n, values of block n + 1.
    __device__ __forceinline__ void load(int i) const {
        constexpr int HEAD_DIM = Config::HEAD_DIM, BLOCK_N = Config::BLOCK_N;
        const int n = blocks - 1 - i;
        const bool has_keys = n >= 0, has_values = i > 0;
        const auto place = static_cast<std::uint32_t>(i % STAGES);
        const SharedAddress K_smem = ring + place * Config::STAGE_BYTES;
        const SharedAddress barrier = full + 8 * place;
        arrive_expecting(barrier, has_keys && has_values ? Config::STAGE_BYTES : Config::KV_BYTES);
        if (has_keys) load_keys<HEAD_DIM, BLOCK_N>(a, at, K_smem, barrier, n);
        if (has_values)
            load_values<HEAD_DIM, BLOCK_N>(a, at, K_smem + Config::KV_BYTES, barrier, n + 1);
    }
    __device__ __forceinline__ void fill() const {
        for (int i = 0; i < STAGES && i <= blocks && blocks > 0; ++i) load(i);
    }
    /// Thread 0 then refills the stage that was released LAG − 1 steps ago.
    __device__ __forceinline__ void release() {
        if (threadIdx.x % 32 == 0) arrive(empty + 8 * stage());
        here.advance();
        ++next;
        if (threadIdx.x == 0 && next >= STAGES && next <= blocks) {
            wait_phase(empty + 8 * static_cast<std::uint32_t>(next % STAGES),
                       static_cast<unsigned>(next / STAGES - 1) & 1u);
            load(next);
        }
        warp_barrier();
    }
    // [refill]
};

/// No turns.
struct NoTurns {
    __device__ __forceinline__ void wait() const {}
    __device__ __forceinline__ void pass() const {}
};

// [kernel]
/// Grid: tiles in x. Block: THREADS. Shared memory: SHARED_BYTES.
template <class Config, class T>
__global__ void __launch_bounds__(Config::THREADS, Config::BLOCKS_PER_SM)
    short_hopper_attention(const __grid_constant__ HopperArguments<T> a) {
    constexpr int HEAD_DIM = Config::HEAD_DIM, BLOCK_N = Config::BLOCK_N;
    const SharedAddress q_full = shared_address(Config::BARRIERS);
    constexpr bool ALONE = Config::WARPGROUPS == 1;
    const int w = ALONE ? 0 : warpgroup_index();
    const Lane lane;
    const int first_row = 64 * w + 16 * (lane.warp % 4);
    const SharedAddress own_q =
        shared_address(0) + static_cast<std::uint32_t>(w) * Config::Q_TILE_BYTES;
    const SectionPosition at(a, blockIdx.x, Config::BLOCK_M);
    const KeyBlocks<BLOCK_N> blocks(a, at.first_q, Config::BLOCK_M);
    const KeyBlocks<BLOCK_N> own = ALONE ? blocks : KeyBlocks<BLOCK_N>(a, at.first_q + 64 * w, 64);
    const FoldedScale scale(a.scale);
    SelfServiceRing<Config, T> ring{a, at, blocks.count};
    if (threadIdx.x == 0) {
        init_barrier(q_full, 1);
        for (std::uint32_t i = 0; i < Config::STAGES; ++i) {
            init_barrier(ring.full + 8 * i, 1);
            init_barrier(ring.empty + 8 * i, 4 * Config::WARPGROUPS);
        }
        publish_barriers();
        prefetch_maps(a);
    }
    wait_for_grids_before();
    if (threadIdx.x == 0) {
        load_queries<HEAD_DIM, Config::WARPGROUPS>(a, at, shared_address(0), q_full);
        ring.fill();
    }
    __syncthreads();
    wait_phase(q_full, 0);
    apply_sign<HEAD_DIM, T>(own_q, scale.sign, 1 + w);

    NoTurns turns;
    Tracer<false> trace(a.trace, w, false);
    TileWork<Config, T> work(scale);
    work.run(a, lane, at.first_q + first_row + lane.group, blocks, own, by_rows(own_q), ring, turns,
             trace, [] {});
    // Not before: blocks of the next grid would take the places that this one's blocks leave, here
    // one and there three, and keep their unequal shares.
    let_next_grid_begin();
    finish_and_stage(a, at, lane, first_row, work.reference, work.O, own_q);
    store_tile<HEAD_DIM>(a, at, lane, first_row, own_q, 1 + w);
    if (threadIdx.x % 128 == 0) wait_stores_read<0>();  // the memory must live until then
}
// [kernel]

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
