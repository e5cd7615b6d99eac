#pragma once
/// @file
/// The chapter's last kernels on the CPU executor.

#include <span>

#include "common/attention.h"

namespace fa {

/// "executor_hopper".
extern const Implementation EXECUTOR_HOPPER;

/// Each size of the last kernels for all problems that it can run, "executor_long_hopper_64" and so
/// on: what "executor_hopper" takes for large problems only, small ones can test. Not on the list.
std::span<const Implementation> hopper_sizes_on_executor();

}  // namespace fa
