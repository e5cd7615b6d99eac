#pragma once
/// @file
/// What the cost model says an implementation takes, from the machine's measured ceilings.

#include <optional>

#include "chapters/06_benchmark/measured_ceilings.h"
#include "common/attention.h"

namespace fa {

/// The time that follows from what an implementation moves and computes. A naive one: its steps one
/// after the other, each as long as its longest part. One that works in tiles: a single kernel that
/// reads K and V again for each block of queries, computes tiles on the diagonal in full, and
/// overlaps everything. Its products are in fp32, whatever the type of the tensors; on a GPU
/// chapter 4's model of a multiprocessor says how long a tile takes, shared memory included. Waits,
/// launches and idle processors are in neither, and so the prediction is what a measured time
/// should be held against: the difference is what the model leaves out.
/// @param ceilings of the problem's type and of fp32
/// @return nothing for an implementation that the model does not describe
std::optional<double> predicted_seconds(const Implementation& implementation,
                                        const AttentionProblem& problem,
                                        const CeilingsByType& ceilings);

}  // namespace fa
