"""Attention in Triton, in the style of its tutorial: a program per block of queries, keys in a loop, the
online softmax in base 2. It is what a day's work in Triton gives, and a peer for scripts/peers.py.

With TRITON_INTERPRET=1 it runs on the CPU, slowly, which is how it can be checked without a GPU.
"""
import math

import torch
import triton
import triton.language as tl

triton_version = triton.__version__
LOG2_E = 1.4426950408889634


@triton.jit
def visit_tiles(first, last, q, rows, k_pointer, v_pointer, maximum, total, accumulator, len_kv, shift, scale_log2,
                MASKED: tl.constexpr, CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_N: tl.constexpr):
    """The online softmax over the keys from `first` to `last`, a tile at a time; whole and unmasked ones, or not."""
    channels = tl.arange(0, HEAD_DIM)
    for start in range(first, last, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        offsets = keys[:, None] * HEAD_DIM + channels[None, :]
        if MASKED:
            k = tl.load(k_pointer + offsets, mask=keys[:, None] < len_kv, other=0.0)
        else:
            k = tl.load(k_pointer + offsets)
        scores = tl.dot(q, tl.trans(k)) * scale_log2
        if MASKED:
            seen = keys[None, :] < len_kv
            if CAUSAL:
                seen = seen & (keys[None, :] <= rows[:, None] + shift)
            scores = tl.where(seen, scores, -float("inf"))
        new_maximum = tl.maximum(maximum, tl.max(scores, 1))
        subtract = tl.where(new_maximum == -float("inf"), 0.0, new_maximum)
        weights = tl.exp2(scores - subtract[:, None])
        correction = tl.exp2(maximum - subtract)
        total = total * correction + tl.sum(weights, 1)
        if MASKED:
            v = tl.load(v_pointer + offsets, mask=keys[:, None] < len_kv, other=0.0)
        else:
            v = tl.load(v_pointer + offsets)
        accumulator = tl.dot(weights.to(v.dtype), v, accumulator * correction[:, None])
        maximum = new_maximum
    return maximum, total, accumulator


@triton.jit
def attention_kernel(q_pointer, k_pointer, v_pointer, o_pointer, stride_qh, stride_kh, stride_oh, len_q, len_kv,
                     heads_per_kv, scale_log2, CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr,
                     BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Grid: (blocks of queries, heads of all batches). Tensors are dense, [head of all batches, token, dim]."""
    block = tl.num_programs(0) - 1 - tl.program_id(0)  # the longest first
    head = tl.program_id(1)
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    channels = tl.arange(0, HEAD_DIM)
    q_pointer += head.to(tl.int64) * stride_qh
    k_pointer += (head // heads_per_kv).to(tl.int64) * stride_kh
    v_pointer += (head // heads_per_kv).to(tl.int64) * stride_kh
    o_pointer += head.to(tl.int64) * stride_oh

    q_offsets = rows[:, None] * HEAD_DIM + channels[None, :]
    q = tl.load(q_pointer + q_offsets, mask=rows[:, None] < len_q, other=0.0)
    maximum = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    accumulator = tl.zeros([BLOCK_M, HEAD_DIM], tl.float32)
    shift = len_kv - len_q  # query i sees key j if j <= i + shift
    last = tl.minimum(len_kv, (block + 1) * BLOCK_M + shift) if CAUSAL else len_kv
    # All rows see all keys of the tiles before this one; from it on some are masked.
    seen_by_all = tl.minimum(len_kv, tl.maximum(block * BLOCK_M + shift + 1, 0)) if CAUSAL else len_kv
    masked = seen_by_all // BLOCK_N * BLOCK_N
    maximum, total, accumulator = visit_tiles(0, masked, q, rows, k_pointer, v_pointer, maximum, total, accumulator,
                                              len_kv, shift, scale_log2, False, CAUSAL, HEAD_DIM, BLOCK_N)
    maximum, total, accumulator = visit_tiles(masked, last, q, rows, k_pointer, v_pointer, maximum, total,
                                              accumulator, len_kv, shift, scale_log2, True, CAUSAL, HEAD_DIM, BLOCK_N)
    output = tl.where(total[:, None] == 0.0, 0.0, accumulator / total[:, None])
    tl.store(o_pointer + q_offsets, output.to(o_pointer.dtype.element_ty), mask=rows[:, None] < len_q)


def triton_attention(q, k, v, causal):
    """O of dense Q, K, V [batch, head, token, dim]; the causal mask is aligned bottom-right."""
    batch, heads, len_q, head_dim = q.shape
    if q.dtype == torch.float32:
        raise NotImplementedError("fp32 would run as TF32, which is another problem")
    if head_dim not in (16, 32, 64, 128):
        raise NotImplementedError(f"head_dim {head_dim}: this kernel takes 16, 32, 64 and 128")
    o = torch.empty_like(q)
    block_m = 128 if len_q > 64 else 64
    attention_kernel[(triton.cdiv(len_q, block_m), batch * heads)](
        q, k, v, o, q.stride(1), k.stride(1), o.stride(1), len_q, k.shape[2], heads // k.shape[1],
        LOG2_E / math.sqrt(head_dim), CAUSAL=causal, HEAD_DIM=head_dim, BLOCK_M=block_m, BLOCK_N=64,
        num_warps=4 if head_dim <= 64 else 8, num_stages=3)
    return o
