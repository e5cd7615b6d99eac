#pragma once
/// @file
/// How far every implementation is from fp64.

#include <vector>

#include "common/attention.h"
#include "common/program.h"

namespace fa {

/// Prints the largest and the root-mean-square error of O against fp64 for each implementation and
/// length, and checks each against twice the error of the naive attention of the same type.
/// @param problem all but the lengths
void show_accuracy(Program& program, const AttentionProblem& problem,
                   const std::vector<std::int64_t>& lengths,
                   const std::vector<const Implementation*>& implementations);

}  // namespace fa
