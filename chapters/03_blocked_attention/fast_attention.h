#pragma once
/// @file
/// Blocked attention made fast on a CPU: queries in the lanes of vector registers, all threads
/// busy.

#include "common/attention.h"

namespace fa {

/// What one unit of work (one batch, one head, one block of queries) uses. All sizes in elements.
struct FastTile {
    int block_q;   ///< queries in a block: they fill the lanes of ROW_VECTORS registers
    int block_kv;  ///< keys read between two rescalings
};

/// The block sizes this build uses; block_q follows from the width of the vector registers.
FastTile fast_tile();

/// Heap-free scratch per thread, in bytes: Qᵀ, S, Oᵀ and, for 16-bit inputs, one block of K and V.
std::size_t fast_workspace_per_thread(const AttentionProblem& problem);

/// "cpu_fast": FlashAttention-2's loop order, exact, OpenMP over (batch, head, query block). Any
/// head_dim, lengths, strides and element type. Results do not depend on the number of threads.
extern const Implementation CPU_FAST;

}  // namespace fa
