#pragma once
/// @file
/// What is measured: sets of problems, and the names of the rows.

#include <string>
#include <string_view>
#include <vector>

#include "common/attention.h"
#include "common/cache_state.h"

namespace fa {

/// Problems that belong into one table: alike but for their length.
struct ShapeSet {
    std::string name;       ///< as --shapes calls it, e.g. "d128"
    AttentionProblem base;  ///< all but the lengths
    std::vector<std::int64_t> lengths;

    /// The problem with that many queries and keys.
    AttentionProblem problem(std::int64_t length) const;
    /// "B4 H12 d64 bf16 causal": what the problems have in common.
    std::string title() const;
};

/// The sets there are for a device, the default first. Those of the CPU are small enough for two
/// cores.
std::vector<ShapeSet> shape_sets(Device device);

/// The sets with these names, in the order of the list; "all" stands for all of them.
/// @throws UsageError naming the flag, the name, and the names there are
std::vector<ShapeSet> chosen_sets(const std::vector<ShapeSet>& all, const std::string& flag,
                                  const std::string& names);

/// "cuda_tiled/B4/H12/T512/d64/bf16/causal/cold": the name of a row. Google Benchmark adds
/// "/manual_time".
std::string row_name(const Implementation& implementation, const AttentionProblem& problem,
                     CacheState cache);

/// The scores that are not masked, over all heads: an exponential each.
double visible_scores(const AttentionProblem& problem);

}  // namespace fa
