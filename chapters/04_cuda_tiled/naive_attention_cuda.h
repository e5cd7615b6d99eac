#pragma once
/// @file
/// The baseline on the GPU: two batched matrix products by cuBLAS with a softmax kernel between
/// them, S and P in global memory.

#include "common/attention.h"

namespace fa {

/// "cuda_naive": S in fp32, P in the problem's type; tensor cores for 16-bit types, no TF32 for
/// fp32.
extern const Implementation CUDA_NAIVE;

/// "cuda_naive_16bit_scores": S in the problem's 16-bit type too, as eager frameworks have it: a
/// third less memory, and wrong where scores are large (chapter 7). Refuses fp32.
extern const Implementation CUDA_NAIVE_16BIT_SCORES;

}  // namespace fa
