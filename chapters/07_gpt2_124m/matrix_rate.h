#pragma once
/// @file
/// How fast this machine multiplies the network's matrices: the ceiling for all but attention.

#include "chapters/07_gpt2_124m/gpt2_model.h"
#include "chapters/07_gpt2_124m/layers.h"

namespace fa {

/// FLOP/s of the network's widest linear layer on 2048 random tokens: the best of a few runs, about
/// half a second in all.
double measure_matrix_rate(const Gpt2& model, const Arithmetic& arithmetic, std::uint64_t seed);

}  // namespace fa
