#pragma once
/// @file
/// What the fused kernels of chapters 4 and 5 are told, by value: the same for the GPU and the CPU
/// executor.

#include <cstdint>

#include "chapters/04_cuda_tiled/fused_support.h"
#include "common/attention.h"
#include "common/kernel_language.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// One problem as a kernel sees it. Lengths fit 32 bits, offsets into tensors are 64-bit.
template <class T>
struct KernelArguments {
    GlobalPointer<const T> q;  ///< [batch, heads_q, len_q, head_dim]
    GlobalPointer<const T> k;  ///< [batch, heads_kv, len_kv, head_dim]
    GlobalPointer<const T> v;  ///< [batch, heads_kv, len_kv, head_dim]
    GlobalPointer<T> o;        ///< [batch, heads_q, len_q, head_dim]
    GlobalPointer<float> lse;  ///< [batch, heads_q, len_q], or null
    Strides q_strides, k_strides, v_strides, o_strides;
    std::int64_t lse_stride_batch, lse_stride_head;
    int heads_q;
    int heads_per_kv_head;  ///< query head h reads key/value head h / heads_per_kv_head
    int len_q, len_kv;
    int head_dim;  ///< the real one; tiles are padded to the kernel's HEAD_DIM with zeros
    float scale;
    bool causal;
    bool wide;  ///< rows_are_wide(): rows can be moved four elements at a time

    /// Number of leading keys that query `i` sees (AttentionProblem::visible_keys).
    __device__ int visible_keys(int i) const {
        if (!causal) return len_kv;
        const int n = len_kv - len_q + i + 1;  // in this order nothing passes 2^31
        return n < 0 ? 0 : (n > len_kv ? len_kv : n);
    }
};

/// The kernel's arguments for a problem whose tensors lie in the memory of the device that runs it.
/// @param make_pointer makes a `GlobalPointer<U>` from a `U*` and the number of elements it spans
template <class T, class MakePointer>
KernelArguments<T> kernel_arguments(const AttentionProblem& p, const AttentionTensors& t,
                                    MakePointer make_pointer) {
    const auto span = [](const Shape& shape, const Strides& strides) -> std::int64_t {
        if (shape.count() == 0) return 0;
        return (shape.batch - 1) * strides.batch + (shape.heads - 1) * strides.head +
               (shape.tokens - 1) * strides.token + shape.dim;
    };
    const auto q = t.q.as<T>(), k = t.k.as<T>(), v = t.v.as<T>();
    const auto o = t.o.as<T>();
    const std::int64_t lse_span =
        (p.batch - 1) * t.lse.stride_batch + (p.heads_q - 1) * t.lse.stride_head + p.len_q;
    return {
        .q = make_pointer(q.data, span(q.shape, q.strides)),
        .k = make_pointer(k.data, span(k.shape, k.strides)),
        .v = make_pointer(v.data, span(v.shape, v.strides)),
        .o = make_pointer(o.data, span(o.shape, o.strides)),
        .lse = make_pointer(t.lse.data, t.lse.data ? lse_span : 0),
        .q_strides = q.strides,
        .k_strides = k.strides,
        .v_strides = v.strides,
        .o_strides = o.strides,
        .lse_stride_batch = t.lse.stride_batch,
        .lse_stride_head = t.lse.stride_head,
        .heads_q = static_cast<int>(p.heads_q),
        .heads_per_kv_head = static_cast<int>(p.heads_q / p.heads_kv),
        .len_q = static_cast<int>(p.len_q),
        .len_kv = static_cast<int>(p.len_kv),
        .head_dim = static_cast<int>(p.head_dim),
        .scale = p.effective_scale(),
        .causal = p.causal,
        .wide = rows_are_wide(p, t),
    };
}

/// Which part of the problem a thread block works on: blocks are numbered query block first,
/// longest (under a causal mask: last) query block first of all, so that no long block is left to
/// the end.
struct BlockPosition {
    int batch, head_q, head_kv, first_q;

    template <class T>
    __device__ BlockPosition(const KernelArguments<T>& a, unsigned block_index, int block_m) {
        const int q_blocks = (a.len_q + block_m - 1) / block_m;
        const int heads = static_cast<int>(block_index) / q_blocks;
        first_q = (q_blocks - 1 - static_cast<int>(block_index) % q_blocks) * block_m;
        batch = heads / a.heads_q;
        head_q = heads % a.heads_q;
        head_kv = head_q / a.heads_per_kv_head;
    }
};

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
