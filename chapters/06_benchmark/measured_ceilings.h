#pragma once
/// @file
/// What this machine can do at best, measured in the same run as the attentions, and the bound that
/// follows for a problem.

#include <string>

#include <string>
#include <utility>
#include <vector>

#include "common/cost_model.h"

namespace fa {

/// The ceilings of one device for products of several element types.
using CeilingsByType = std::vector<std::pair<DType, Ceilings>>;

/// Those for a type. @throws std::invalid_argument if they were not measured
const Ceilings& ceilings_for(const CeilingsByType& ceilings, DType dtype);

/// The least that any exact attention must do: read Q, K and V once and write O once; the FLOPs of
/// the usual convention; one exponential for each score that is not masked.
Cost least_cost(const AttentionProblem& problem);

/// The time below which no exact attention can come on a machine with these ceilings: the longest
/// of the three parts of least_cost().
double bound_seconds(const Ceilings& ceilings, const AttentionProblem& problem);

/// Measures the ceilings of the device for products of a type, in under a second: on a GPU a copy
/// from memory to memory, a cuBLAS product of 8192³ and, by its clock, 16 exponentials a
/// multiprocessor; on a CPU a copy, multiply-adds on registers and chapter 3's exponential.
/// @param threads of a CPU; 0: all
Ceilings measure_ceilings(Device device, DType dtype, int threads);

#ifdef FA_CUDA_ENABLED
/// measure_ceilings() on the GPU.
Ceilings measure_cuda_ceilings(DType dtype);
#endif

}  // namespace fa
