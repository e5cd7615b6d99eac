#pragma once
/// @file
/// Attention in three steps, as textbooks write it: S = scale·Q·Kᵀ, P = softmax(S), O = P·V, with S
/// and P in memory for all heads at once. It is the baseline of the whole course, so each step is
/// as good as Eigen and OpenMP make it; what it cannot help is the memory.

#include "common/attention.h"

namespace fa {

/// The three steps with S and P in fp32. Any lengths, head dimension, strides and element type.
/// Workspace: 2·B·H·Tq·Tk floats, and for 16-bit inputs a few fp32 tiles per thread. The results do
/// not depend on the number of threads.
extern const Implementation CPU_NAIVE;

/// The same code with S and P in bf16, as eager frameworks run it on bf16 models: S is rounded
/// after the product, again after scaling, and P after the softmax; sums stay fp32. Chapter 7 shows
/// what that does to a language model with large scores.
extern const Implementation CPU_NAIVE_BF16_SCORES;

}  // namespace fa
