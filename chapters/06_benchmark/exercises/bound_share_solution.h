#pragma once
/// @file
/// Solution of the exercise on the share of the bound.
///
/// Memory, products and exponentials have units of their own, which can work side by side: the
/// bound is the longest of the three, not their sum. What is counted is what no exact attention can
/// do without. K and V must be read once for each key/value head, however many queries share it,
/// and the mask saves no byte of them; it saves half of the FLOPs, by the convention that everybody
/// uses, and the exponentials of the scores that it hides, which are counted one by one. A bound
/// that counts more than that would be passed by a good kernel, and bounds nothing.

#include <algorithm>
#include <cstdint>

#include "common/attention.h"
#include "common/cost_model.h"

namespace fa::exercise {

/// The least time that any exact attention needs, over the time that one took.
inline double share_of_bound(const AttentionProblem& problem, const Ceilings& ceilings,
                             double seconds) {
    double visible = 0;
    for (std::int64_t i = 0; i < problem.len_q; ++i)
        visible += static_cast<double>(problem.visible_keys(i));
    visible *= static_cast<double>(problem.batch) * static_cast<double>(problem.heads_q);
    const double bound =
        std::max({qkvo_bytes(problem) / ceilings.bytes_per_s,
                  problem.flops() / ceilings.flops_per_s, visible / ceilings.exponentials_per_s});
    return bound / seconds;
}

}  // namespace fa::exercise
