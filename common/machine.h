#pragma once
/// @file
/// What the machine has.

#include <cstdint>

#include "common/attention.h"

namespace fa {

/// Bytes of main memory.
std::uint64_t machine_memory_bytes();

/// Refuses a problem whose Q, K, V, O and `scratch_bytes` exceed the machine's memory: before
/// the work, where an allocation of that size may end in the middle of it, or end the program.
/// @throws std::runtime_error naming the problem, what it takes, and what there is
void check_fits_in_memory(const AttentionProblem& problem, double scratch_bytes = 0);

}  // namespace fa
