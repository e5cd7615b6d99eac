#pragma once
/// @file
/// The section of errors against fp64 of the programs about kernels.

#include <span>

#include "common/program.h"

namespace fa {

/// Runs each implementation on each problem with random inputs, on its own device, prints the
/// largest errors of O and of LSE against fp64, and adds checks and rows. O may err twice as much
/// as the naive attention of the same type, plus two roundings to that type; LSE by 1e-5. Outputs
/// hold NaN before each run: what is not written shows.
void show_error_table(Program& program, std::span<const Implementation* const> implementations,
                      std::span<const AttentionProblem> problems);

}  // namespace fa
