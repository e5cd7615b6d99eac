#pragma once
/// @file
/// The cuBLAS handle of the course.

#include <cublas_v2.h>

namespace fa {

/// A handle whose work goes to `stream`. One per thread, made at first use, with a workspace of its
/// own so that no call allocates (CUDA graphs forbid it). fp32 products are exact fp32: TF32 is
/// off.
/// @throws std::runtime_error if cuBLAS cannot start
cublasHandle_t cublas_handle(cudaStream_t stream);

}  // namespace fa
