#pragma once
/// @file
/// Tiles by TMA: what was a loop over all threads in chapter 8 is an instruction of one thread.

#include "chapters/09_hopper/arguments.h"
#include "chapters/09_hopper/products.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// Hints that the maps will be needed.
template <class T>
__device__ __forceinline__ void prefetch_maps(const HopperArguments<T>& a) {
    prefetch_map(a.q_map);
    prefetch_map(a.k_map);
    prefetch_map(a.v_map);
    prefetch_map(a.o_map);
}

// [load-tile]
/// Begins to load ROWS tokens of a head, one box for 64 channels. Zeros where the tensor ends.
/// @param barrier its phase will wait for ROWS · HEAD_DIM · 2 bytes
template <int HEAD_DIM, int ROWS>
__device__ __forceinline__ void load_tile(SharedAddress to, const TensorMap& map, MapSteps steps,
                                          SharedAddress barrier, int token, int head, int batch) {
#pragma unroll
    for (int box = 0; box < HEAD_DIM / 64; ++box)
        load_box(to + static_cast<std::uint32_t>(box) * box_bytes(ROWS), map, barrier, 64 * box,
                 token, head * steps.head, batch * steps.batch);
}

/// Loads the queries of WARPGROUPS warpgroups, 64 each, every warpgroup's a tile by itself.
/// @param block, blocks which of how many blocks: they take turns, 64 queries each
template <int HEAD_DIM, int WARPGROUPS, class T, class Position>
__device__ __forceinline__ void load_queries(const HopperArguments<T>& a, const Position& at,
                                             SharedAddress to, SharedAddress barrier, int block = 0,
                                             int blocks = 1) {
    constexpr std::uint32_t TILE_BYTES = HEAD_DIM / 64 * box_bytes(64);
    arrive_expecting(barrier, WARPGROUPS * TILE_BYTES);
    for (int w = 0; w < WARPGROUPS; ++w)
        load_tile<HEAD_DIM, 64>(to + static_cast<std::uint32_t>(w) * TILE_BYTES, a.q_map, a.q_steps,
                                barrier, at.first_q + 64 * (blocks * w + block), at.head_q,
                                at.batch);
}

/// Loads block n of the keys.
template <int HEAD_DIM, int BLOCK_N, class T, class Position>
__device__ __forceinline__ void load_keys(const HopperArguments<T>& a, const Position& at,
                                          SharedAddress to, SharedAddress barrier, int n) {
    load_tile<HEAD_DIM, BLOCK_N>(to, a.k_map, a.k_steps, barrier, n * BLOCK_N, at.head_kv,
                                 at.batch);
}
/// Loads block n of the values.
template <int HEAD_DIM, int BLOCK_N, class T, class Position>
__device__ __forceinline__ void load_values(const HopperArguments<T>& a, const Position& at,
                                            SharedAddress to, SharedAddress barrier, int n) {
    load_tile<HEAD_DIM, BLOCK_N>(to, a.v_map, a.v_steps, barrier, n * BLOCK_N, at.head_kv,
                                 at.batch);
}
// [load-tile]

/// Multiplies a warpgroup's queries by −1 or 0: the sign of the scale goes with Q (chapter 5). A
/// scale above 0, the usual one, costs a comparison.
/// @param barrier a named barrier of the warpgroup's own
template <int HEAD_DIM, class T>
__device__ __forceinline__ void apply_sign(SharedAddress tile, float sign, int barrier) {
    if (sign == 1.0f) return;
    const int thread = static_cast<int>(threadIdx.x) % 128;
    for (int i = thread; i < 64 * HEAD_DIM / 8; i += 128) {
        const SharedAddress place = tile + static_cast<std::uint32_t>(16 * i);
        auto chunk = load_shared<Packed<T, 8>>(place);
#pragma unroll
        for (int e = 0; e < 8; ++e) chunk[e] = from_float<T>(to_float(chunk[e]) * sign);
        store_shared(place, chunk);
    }
    publish_for_copies();
    named_barrier_wait(barrier, 128);
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
