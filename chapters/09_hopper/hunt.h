#pragma once
/// @file
/// A hunt for rare faults on the GPU: hangs, results that differ from run to run, wrong rows.

#include "common/program.h"

namespace fa {

/// Launches the kernels for some seconds, every time on freshly filled buffers: T from 1 to 2049 in
/// odd steps, causal and not, 64 and 128 channels, other numbers of heads and lengths of K; the
/// last kernels, and between them the steps of the ladder. Results are compared bit by bit between
/// launches, and some rows with fp64. A launch that does not end within 20 s ends the process with
/// the case on stderr and exit status 1. Adds its checks.
/// @throws std::runtime_error if no GPU of compute capability 9.0 is used
void hunt(Program& program, double seconds);

}  // namespace fa
