#pragma once
/// @file
/// What the kernels of this chapter can run, and what TMA is told of a tensor.

#include <array>
#include <cstddef>
#include <string>

#include "common/attention.h"

namespace fa {

/// Shared memory that a block can have on Hopper, bytes.
inline constexpr std::size_t HOPPER_SHARED_LIMIT = 227 * 1024;

/// The reason why a GPU of this compute capability (80, 90, …) cannot run the kernels, or empty.
std::string hopper_capability_why_unsupported(int compute_capability);

/// The reason why the kernels cannot run a problem, or empty.
/// @param most_head_dim the largest head dimension of the kernel
/// @param block_m       queries of a tile
std::string hopper_why_unsupported(const AttentionProblem& problem, std::int64_t most_head_dim,
                                   int block_m);

/// The reason why TMA cannot read Q, K and V and write O where they lie, or empty: pointers that
/// are not multiples of 16 bytes, strides that are not multiples of eight elements or pass 2^40
/// bytes.
/// @pre validate() has passed
std::string tma_why_unsupported(const AttentionProblem& problem, const AttentionTensors& tensors);

/// A tensor of 16-bit elements as TMA wants it described.
struct BoxSource {
    const void* data = nullptr;
    std::array<std::int64_t, 4> extents{};  ///< channels, tokens, heads, batch; at least 1 each
    std::array<std::int64_t, 3> strides{};  ///< of a token, a head, a batch entry, in elements
};

/// Describes a tensor. An extent that is not walked, being 1 or a broadcast, is 1 and has the
/// stride of the extent before it; a tensor without elements is described as one row of 8 zeros,
/// which no kernel reads.
BoxSource box_source(const void* data, const Shape& shape, const Strides& strides);

}  // namespace fa
