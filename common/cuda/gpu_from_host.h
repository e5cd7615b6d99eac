#pragma once
/// @file
/// Running on the GPU with tensors that lie in host memory. Only in builds with CUDA.

#include "common/attention.h"

namespace fa {

/// Copies dense tensors to the device, runs, and copies O and LSE back.
/// @throws OutOfDeviceMemory; CudaError; what attention() throws
void run_on_gpu_from_host(const Implementation& implementation, const AttentionProblem& problem,
                          const AttentionTensors& tensors);

}  // namespace fa
