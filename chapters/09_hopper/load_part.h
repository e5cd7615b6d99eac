#pragma once
/// @file
/// Keys and values for a cluster: each of its blocks loads a part, and all of them get the whole.

#include "chapters/09_hopper/load_tile.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

// [load-part]
/// Begins to load one of CLUSTER equal parts of ROWS tokens of a head, to the same place in all
/// blocks of the cluster. A block by itself loads all of it.
/// @param map     of boxes of ROWS / CLUSTER tokens
/// @param barrier in each block its phase will wait for ROWS · HEAD_DIM · 2 bytes in all
/// @param part    the block in its cluster
template <int HEAD_DIM, int ROWS, int CLUSTER>
__device__ __forceinline__ void load_part(SharedAddress to, const TensorMap& map, MapSteps steps,
                                          SharedAddress barrier, int token, int head, int batch,
                                          int part) {
    if constexpr (CLUSTER == 1) {
        load_tile<HEAD_DIM, ROWS>(to, map, steps, barrier, token, head, batch);
    } else {
        constexpr int PART = ROWS / CLUSTER;
        constexpr std::uint16_t ALL = (1 << CLUSTER) - 1;
        const SharedAddress own = to + static_cast<std::uint32_t>(part) * box_bytes(PART);
#pragma unroll
        for (int box = 0; box < HEAD_DIM / 64; ++box)
            load_box_for_cluster(own + static_cast<std::uint32_t>(box) * box_bytes(ROWS), map,
                                 barrier, 64 * box, token + part * PART, head * steps.head,
                                 batch * steps.batch, ALL);
    }
}
// [load-part]

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
