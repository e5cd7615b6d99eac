#pragma once
/// @file
/// Shared memory of the last kernel for long problems: its barriers, the stages of keys and values,
/// and the positions of the tiles.

#include "chapters/09_hopper/hopper_config.h"
#include "chapters/09_hopper/products.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// Which heads and queries a tile is, as it is handed on: 16 bytes.
struct TilePosition {
    static constexpr int NONE = -1;  ///< first_q after the last tile
    int batch = 0, head_q = 0, head_kv = 0, first_q = NONE;
};

/// The barriers and tiles of a block in shared memory.
template <class Config>
struct HopperMemory {
    static constexpr int STAGES = Config::STAGES, Q_SLOTS = Config::Q_SLOTS;
    static constexpr int CLUSTER = Config::CLUSTER;

    SharedAddress q = shared_address(0), ring = shared_address(Config::RING);
    SharedAddress q_full = shared_address(Config::BARRIERS), q_empty = q_full + 8 * Q_SLOTS;
    SharedAddress full = q_empty + 8 * Q_SLOTS, empty = full + 8 * STAGES;
    SharedAddress told = shared_address(Config::TOLD);  ///< a position has come, in clusters
    SharedAddress positions = shared_address(Config::POSITIONS);

    /// By one thread, before a barrier of the block, or of the cluster. What is handed back is
    /// handed back by all blocks of it.
    __device__ __forceinline__ void init() const {
        for (std::uint32_t i = 0; i < Q_SLOTS; ++i) {
            init_barrier(q_full + 8 * i, 1);
            init_barrier(q_empty + 8 * i, Config::WARPGROUPS * CLUSTER);
            if constexpr (CLUSTER > 1) init_barrier(told + 8 * i, 1);
        }
        for (std::uint32_t i = 0; i < STAGES; ++i) {
            init_barrier(full + 8 * i, 1);
            init_barrier(empty + 8 * i, 4 * Config::WARPGROUPS * CLUSTER);  // every warp for itself
        }
        publish_barriers();
    }

    // [hand-on]
    /// Leaves the position of the next tile for the warpgroups; it travels with the queries. In a
    /// cluster one block decides, and tells all of them.
    /// @param at the position, where it is the first block that calls
    /// @return the position
    __device__ __forceinline__ TilePosition hand_on(std::uint32_t slot, unsigned parity,
                                                    const TilePosition& at, int block) const {
        const SharedAddress place = positions + 16 * slot;
        if constexpr (CLUSTER == 1) {
            store_shared(place, at);
            return at;
        } else {
            const SharedAddress barrier = told + 8 * slot;
            if (block == 0)
                for (int other = 0; other < CLUSTER; ++other)
                    send(address_in_block(place, other), at, address_in_block(barrier, other));
            arrive_expecting(barrier, sizeof(TilePosition));
            wait_phase(barrier, parity);
            return load_shared<TilePosition>(place);
        }
    }
    // [hand-on]

    /// The position that has come with the queries; alike in all threads.
    __device__ __forceinline__ TilePosition position(std::uint32_t slot) const {
        const auto at = load_shared<TilePosition>(positions + 16 * slot);
        return {uniform(at.batch), uniform(at.head_q), uniform(at.head_kv), uniform(at.first_q)};
    }
    /// Hands the place of queries back, to all blocks of the cluster.
    __device__ __forceinline__ void release_queries(std::uint32_t slot) const {
        const SharedAddress barrier = q_empty + 8 * slot;
        if constexpr (CLUSTER == 1)
            arrive(barrier);
        else
            for (int block = 0; block < CLUSTER; ++block)
                arrive_in_cluster(address_in_block(barrier, block));
    }
};

/// The stages of K and V as a warpgroup sees them arrive.
template <class Config>
struct ConsumerRing {
    SharedAddress full, empty;
    Matrix first_keys, first_values;
    bool speaks;  ///< one lane of the warp for each block of the cluster
    RingPosition<Config::STAGES> here{};

    __device__ __forceinline__ ConsumerRing(const HopperMemory<Config>& memory, const Lane& lane)
        : full(memory.full),
          empty(memory.empty),
          first_keys(by_rows(memory.ring)),
          first_values(by_columns(memory.ring + Config::KV_BYTES, box_bytes(Config::BLOCK_N))),
          speaks(lane.index < Config::CLUSTER) {
        if constexpr (Config::CLUSTER > 1)
            empty = address_in_block(empty, lane.index % Config::CLUSTER);
    }

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
        if (speaks) {
            if constexpr (Config::CLUSTER == 1)
                arrive(empty + 8 * stage());
            else
                arrive_in_cluster(empty + 8 * stage());
        }
        here.advance();
    }
};

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
