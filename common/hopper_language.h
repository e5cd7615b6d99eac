#pragma once
/// @file
/// What a kernel for Hopper (compute capability 9.0, architecture "90a") needs beyond
/// common/tensor_core_language.h. Nearly every name is one PTX instruction.
///
/// Barriers in shared memory (PTX ISA, "mbarrier"), 8 bytes each. A phase ends when all arrivals
/// and all announced bytes are there; phases are even (parity 0) and odd in turn, the first is
/// even:
///  - `init_barrier(b, arrivals)`, then `publish_barriers()` and a barrier of the block
///  - `arrive(b)`, `arrive_expecting(b, bytes)`: an arrival that announces bytes of copies
///  - `wait_phase(b, parity)`: until the phase of that parity has ended. Only two phases are told
///    apart: whoever misses one whole phase waits for ever
///
/// Copies of boxes by the tensor memory accelerator (TMA). A `TensorMap` describes a tensor
/// [batch, heads, tokens, channels] of 16-bit elements in global memory and boxes of 64 channels ×
/// R tokens; in shared memory a box is R rows of 128 bytes, swizzled as in chapter 8 (chunk c of
/// row r lies at c ^ (r % 8); boxes begin at a multiple of 1024 bytes). What lies outside the
/// tensor is read as zero and not written, but for what follows the last channel: a store writes
/// whole units of 16 bytes (measured on an H200):
///  - `load_box(to, map, barrier, channel, token, head, batch)`: its bytes count for the barrier
///  - `store_box(map, from, channel, token, head, batch)`; `commit_stores()`;
///    `wait_stores_read<PENDING>()`: until at most PENDING groups still read shared memory
///  - `prefetch_map(map)`
///  - `publish_for_copies()`: this thread's writes to shared memory become visible to copies and
///    products (fence.proxy.async)
///
/// Roles within a block:
///  - `increase_registers<N>()`, `decrease_registers<N>()` by all warps of a warpgroup (setmaxnreg)
///  - `named_barrier_wait(id, threads)`, `named_barrier_arrive(id, threads)`: barriers 1 … 15 of a
///    part of the block
///  - `one_lane()`: true for one lane of the warp (elect.sync)
///  - `uniform(x)`: x of lane 0, for all lanes: the compiler then knows that the warp agrees
///
/// Products by a warpgroup, 128 threads (PTX ISA, "wgmma"): D (64 × N, fp32) = A·B or D + A·B, 16
/// deep. A comes from shared memory or registers, B from shared memory. They run asynchronously:
///  - `fence_products()` before the first of a group; `commit_products()`;
///  `wait_products<PENDING>()`
///  - `Product<T, N, B_IS_ROWS>`: `multiply(d, a, b)`, `add(d, a, b)`, `add(d, a_regs, b)`
///  - `pin(registers)` right after the wait: tells the compiler that they have changed
///  - `by_rows(address)`: a matrix whose rows in shared memory run along the depth: Q, and K as
///    B = Kᵀ. 16 deeper is `+ DEEPER_BY_ROWS`, within the 64 columns of a box
///  - `by_columns(address, box_bytes)`: a matrix whose rows in shared memory run along N: V, with
///    B_IS_ROWS. 16 deeper is `+ DEEPER_BY_COLUMNS`; box_bytes leads to the box of the next 64
///    columns
///
/// Which thread t of a warpgroup holds which element (PTX ISA, "Register Fragments for
/// wgmma.mma_async.m64nNk16"), with w = t / 32 % 4, g = t % 32 / 4, q = t % 4:
///
///     D, 64 × N    d[j][0], d[j][1]: row 16w + g, columns 8j + 2q, 8j + 2q + 1
///                  d[j][2], d[j][3]: row 16w + g + 8
///     A, 64 × 16   as A of mma.sync (common/tensor_core_language.h) for rows 16w … 16w + 15
///
/// Launches that overlap (programmatic dependent launch; PTX ISA, "griddepcontrol"):
///  - `let_next_grid_begin()`: the grid that the stream runs next may begin, as soon as all blocks
///    of this one have said so or ended
///  - `wait_for_grids_before()`: until those that came before have ended and what they wrote can be
///    seen. Before it a thread must not touch global memory, tensor maps of the arguments aside
///
/// Clusters (PTX ISA, "Cluster of Cooperative Thread Arrays"): blocks that run at the same time,
/// each on a multiprocessor of its own, and reach each other's shared memory. A SharedAddress says
/// which block's it is; only what follows takes another's:
///  - `block_in_cluster()`, and `address_in_block(address, block)`: the same place in that block
///  - `arrive_in_cluster(b)`: at a barrier of any block; who waits for it is in its block
///  - `load_box_for_cluster(..., blocks)`: load_box() to the same place in every block whose bit is
///    set, and its bytes count for the same barrier there (multicast): read once, written in each
///  - `send(to, x, barrier)`: 16 bytes, which count for a barrier of the block they go to
///  - `cluster_barrier()` by all threads of all blocks. One has to come before the first access to
///    another block's memory, which may not have begun, and one after the last: it may have ended
///
/// Others: `store_matrices(address, r)`, stmatrix, the reverse of load_matrices(); `atomic_add(p,
/// n)` on a global counter, `global_fence()`; `clock_cycles()`; `from_lane(x, lane)`, x of
/// another lane; `add_downwards(a, b)`, a sum rounded towards −∞.
///
/// With FA_BARRIER_DELAYS (common/barrier_delay.h) a chosen warp sleeps at all these barriers and
/// at
/// `__syncthreads()`: `sleep_if_chosen()`.

#include "common/barrier_delay.h"
#include "common/tensor_core_language.h"

#ifdef __CUDACC__
#include "common/cuda/hopper_language.cuh"
#else
#include "common/executor/hopper_language.h"
#endif
