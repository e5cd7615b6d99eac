#pragma once
/// @file
/// Rows of O on the GPU against fp64.

#include <cstdint>

#include "common/attention.h"

namespace fa {

/// The largest error of one row of O over its bound: NaN if one is. Weights and O are rounded to 16
/// bits: each may cost roundoff · Σ weight · |v|. @throws CudaError
/// @param t in device memory, of fp16 or bf16, and computed
double row_error_over_bound(const AttentionProblem& p, const AttentionTensors& t,
                            std::int64_t batch, std::int64_t head, std::int64_t query);

}  // namespace fa
