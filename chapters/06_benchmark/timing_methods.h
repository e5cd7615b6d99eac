#pragma once
/// @file
/// One kernel timed in several ways, wrong ones among them.

#include <string>
#include <utility>
#include <vector>

#include "chapters/06_benchmark/timed_case.h"
#include "common/program.h"

namespace fa {

/// A way to time, in words, and the seconds that it gives.
using MethodTime = std::pair<std::string, double>;

/// Prints what each way of timing gives for one implementation at a short and at a long length, and
/// checks that it is right there. What it refuses is told, and not judged.
/// @param problem all but the lengths
void show_timing_methods(Program& program, const Implementation& implementation,
                         const AttentionProblem& problem, const std::vector<std::int64_t>& lengths,
                         const CaseOptions& options);

#ifdef FA_CUDA_ENABLED
/// The ways on a GPU.
std::vector<MethodTime> cuda_timing_methods(const Implementation& implementation,
                                            const AttentionProblem& problem, std::uint64_t seed);
#endif

}  // namespace fa
