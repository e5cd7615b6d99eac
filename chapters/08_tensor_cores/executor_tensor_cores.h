#pragma once
/// @file
/// The chapter's last kernel on the CPU executor.

#include "common/attention.h"

namespace fa {

/// "executor_tensor_cores": the GPU kernel's own source, run on the CPU, tensor cores and all.
extern const Implementation EXECUTOR_TENSOR_CORES;

}  // namespace fa
