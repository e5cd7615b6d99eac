#pragma once
/// @file
/// Tensor maps for the GPU.

#include <cuda.h>

#include "chapters/09_hopper/hopper_support.h"

namespace fa {

/// The map of a tensor in device memory, for boxes of 64 channels and `rows` tokens, swizzled by
/// 128 bytes; what lies outside is read as zero.
/// @throws std::runtime_error with the driver's reason and the tensor
CUtensorMap tensor_map(const BoxSource& source, int rows);

}  // namespace fa
