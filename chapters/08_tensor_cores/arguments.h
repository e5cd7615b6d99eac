#pragma once
/// @file
/// What the kernels of this chapter are told beyond chapter 4's, and where a block works.

#include "chapters/04_cuda_tiled/arguments.h"
#include "common/tensor_core_language.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// One problem as a kernel sees it.
template <class T>
struct Arguments : KernelArguments<T> {
    bool chunked;       ///< rows_are_chunked(): rows can be moved 16 bytes at a time
    int heads_in_all;   ///< query heads of all batches
    int section_heads;  ///< of a section (SectionPosition)
};

// [position]
/// Longest blocks first, over all heads of a section and not only over one: blocks that run at the
/// same time are equally long, and the short ones fill the gaps at the end. Without a mask the
/// short one is the last, which may have fewer queries. The K and V of a section fit into the L2
/// cache together.
struct SectionPosition {
    int batch, head_q, head_kv, first_q;

    template <class T>
    __device__ SectionPosition(const Arguments<T>& a, unsigned block_index, int block_m) {
        const int q_blocks = (a.len_q + block_m - 1) / block_m;
        const int in_section = a.section_heads * q_blocks;
        const int section = static_cast<int>(block_index) / in_section;
        const int i = static_cast<int>(block_index) - section * in_section;
        const int first_head = section * a.section_heads;
        const int heads = min(a.section_heads, a.heads_in_all - first_head);
        const int head = first_head + i % heads;
        const int nth = i / heads;
        first_q = (a.causal ? q_blocks - 1 - nth : nth) * block_m;
        batch = head / a.heads_q;
        head_q = head % a.heads_q;
        head_kv = head_q / a.heads_per_kv_head;
    }
};
// [position]

/// The first element of the block's queries, and of the keys and values of its head.
template <class T>
struct Sources {
    GlobalPointer<const T> q, k, v;

    template <class Position>
    __device__ __forceinline__ Sources(const Arguments<T>& a, const Position& at)
        : q(a.q + (at.batch * a.q_strides.batch + at.head_q * a.q_strides.head +
                   at.first_q * a.q_strides.token)),
          k(a.k + (at.batch * a.k_strides.batch + at.head_kv * a.k_strides.head)),
          v(a.v + (at.batch * a.v_strides.batch + at.head_kv * a.v_strides.head)) {}
};

/// A thread's place in its warp, in the terms of the fragments (common/tensor_core_language.h).
struct Lane {
    int warp;   ///< of the block
    int index;  ///< 0 … 31
    int group;  ///< g = index / 4: its rows of a 16-row accumulator are g and g + 8
    int pair;   ///< q = index % 4: of 8 columns its own are 2q and 2q + 1

    __device__ __forceinline__ Lane()
        : warp(static_cast<int>(threadIdx.x) / 32),
          index(static_cast<int>(threadIdx.x) % 32),
          group(index / 4),
          pair(index % 4) {}
};

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
