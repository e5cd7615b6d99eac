#pragma once
/// @file
/// What the fused kernels can run, and how they may read it.

#include <string>

#include "common/attention.h"

namespace fa {

/// The two steps of the chapter.
enum class FusedStep { tiled, register_tiled };

/// Largest head dimension of the fused kernels.
inline constexpr int MAX_FUSED_HEAD_DIM = 256;

/// The reason why a fused kernel cannot run a problem, with the numbers, or empty.
/// @param shared_limit bytes of shared memory a block may have on the device
std::string fused_why_unsupported(FusedStep step, const AttentionProblem& problem,
                                  std::size_t shared_limit);

/// Whether all rows can be moved four elements at a time: pointers and strides are multiples of
/// four elements, and so is head_dim.
bool rows_are_wide(const AttentionProblem& problem, const AttentionTensors& tensors);

}  // namespace fa
