#pragma once
/// @file
/// The part of chapter 1 that runs attention and watches the heap.

#include <cstdint>
#include <vector>

#include "common/program.h"

namespace fa {

/// Runs the naive, the blocked and the fast implementation on one fp32 head of each length,
/// measures the peak of what each allocates beside Q, K, V and O, and prints it beside the
/// formulas. Adds rows and checks to the program's results.
void show_measured_peaks(Program& program, std::vector<std::int64_t> lengths, std::int64_t head_dim,
                         bool causal, int threads);

}  // namespace fa
