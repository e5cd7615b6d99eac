#pragma once
/// @file
/// What the kernels of this chapter can run, and what they are told about it.

#include <cstddef>
#include <string>

#include "common/attention.h"

namespace fa {

/// Thread blocks of a launch: query blocks × heads × batch.
std::int64_t blocks_of(const AttentionProblem& problem, int block_m);

/// Whether all rows of Q, K, V and O can be moved 16 bytes at a time: pointers and strides are
/// multiples of eight elements, and so is head_dim.
bool rows_are_chunked(const AttentionProblem& problem, const AttentionTensors& tensors);

/// Heads of a section (SectionPosition): as many as have their K and V in half of an L2 cache, in
/// sections of equal size.
int heads_of_section(const AttentionProblem& problem, std::size_t l2_bytes);

/// The reason why a GPU of this compute capability (80, 90, …) cannot run the kernels, or empty.
std::string capability_why_unsupported(int compute_capability);

/// The reason why no kernel of this chapter can run a problem, or empty.
/// @param most_head_dim the largest head dimension of the kernel
/// @param block_m       the least number of queries in a block
/// @param shared_need   bytes of shared memory that a block needs
/// @param shared_limit  bytes that it may have on the device
std::string tensor_core_why_unsupported(const AttentionProblem& problem, std::int64_t most_head_dim,
                                        int block_m, std::size_t shared_need,
                                        std::size_t shared_limit);

}  // namespace fa
