#pragma once
/// @file
/// What the kernels of this chapter are told beyond chapter 8's, and where a warpgroup works.

#include "chapters/08_tensor_cores/arguments.h"
#include "chapters/09_hopper/trace.h"
#include "common/hopper_language.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// Which of a tensor's extents are walked. A broadcast, whose stride is 0, is to TMA an extent of
/// 1: its only coordinate is 0.
struct MapSteps {
    int head = 1, batch = 1;
};

/// One problem as a kernel sees it.
template <class T>
struct HopperArguments : Arguments<T> {
    TensorMap q_map;  ///< boxes of 64 channels and 64 queries
    TensorMap k_map;  ///< boxes of 64 channels and BLOCK_N keys, or a block's part of them
    TensorMap v_map;  ///< the same
    TensorMap o_map;  ///< boxes of 64 channels and 64 queries
    MapSteps q_steps, k_steps, v_steps;
    int tiles;  ///< of BLOCK_M queries, in all
    /// Tiles handed out so far beyond one to each block, from 0 on; null for kernels that do not
    /// fetch tiles.
    GlobalPointer<int> next_tile;
    TraceBuffer trace;  ///< empty but for kernels that are traced
};

/// The thread's warpgroup in its block. The compiler must see that whole warps agree on it, or it
/// would take products apart.
__device__ __forceinline__ int warpgroup_index() {
    return uniform(static_cast<int>(threadIdx.x) / 128);
}

// [ring-position]
/// A place in a ring of STAGES buffers, and the parity of the round it is in.
template <int STAGES>
struct RingPosition {
    int stage = 0;
    unsigned parity = 0;

    __device__ __forceinline__ void advance() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};
// [ring-position]

// [blocks-of-keys]
/// Which blocks of keys a range of queries needs, BLOCK_N keys each, and which of them need a mask:
/// all from `first_masked` on. That one block is always among them, so that after the masked ones
/// every query that sees a key at all has met one.
template <int BLOCK_N>
struct KeyBlocks {
    int count, first_masked;

    /// @param first, rows the range; it may end beyond the last query
    template <class T>
    __device__ __forceinline__ KeyBlocks(const Arguments<T>& a, int first, int rows) {
        const int last = min(first + rows, a.len_q) - 1;
        count = first < a.len_q ? (a.visible_keys(last) + BLOCK_N - 1) / BLOCK_N : 0;
        first_masked = (max(a.visible_keys(min(first, a.len_q - 1)), 1) - 1) / BLOCK_N;
    }
};
// [blocks-of-keys]

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
