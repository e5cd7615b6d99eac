#pragma once
/// @file
/// What the fused kernels can run, and how they may read it.

#include <string>

#include "common/attention.h"

namespace fa {

/// Largest head dimension of the fused kernels.
inline constexpr int MAX_FUSED_HEAD_DIM = 256;

/// The reason why no fused kernel can run a problem, or empty: head_dim and lengths.
std::string fused_sizes_why_unsupported(const AttentionProblem& problem);

/// The reason why a launch is impossible, or empty.
/// @param blocks       thread blocks it has
/// @param missing      shared memory that the smallest tiles need, if the device has less; else 0
/// @param shared_limit bytes of shared memory a block may have on the device
std::string fused_launch_why_unsupported(const AttentionProblem& problem, std::int64_t blocks,
                                         std::size_t missing, std::size_t shared_limit);

/// Whether all rows can be moved four elements at a time: pointers and strides are multiples of
/// four elements, and so is head_dim.
bool rows_are_wide(const AttentionProblem& problem, const AttentionTensors& tensors);

}  // namespace fa
