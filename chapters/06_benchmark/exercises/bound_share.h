#pragma once
/// @file
/// Exercise: the share of the bound that a measured time reaches. Fill in the function and run
///
///     scripts/exercise.sh 6

#include <cstdint>

#include "common/attention.h"
#include "common/cost_model.h"

namespace fa::exercise {

/// The least time that any exact attention needs on a machine with these ceilings, over the time
/// that one took.
/// @param seconds what was measured
inline double share_of_bound(const AttentionProblem& problem, const Ceilings& ceilings,
                             double seconds) {
    // One part after the other, and all T² scores. The bound is for kernels that do better.
    const auto batch = static_cast<double>(problem.batch);
    const auto heads = static_cast<double>(problem.heads_q);
    const auto len_q = static_cast<double>(problem.len_q);
    const auto len_kv = static_cast<double>(problem.len_kv);
    const auto head_dim = static_cast<double>(problem.head_dim);
    const auto element = static_cast<double>(size_of(problem.dtype));

    const double bytes = 2 * batch * heads * (len_q + len_kv) * head_dim * element;
    const double flops = 4 * batch * heads * len_q * len_kv * head_dim;
    const double exponentials = batch * heads * len_q * len_kv;
    return (bytes / ceilings.bytes_per_s + flops / ceilings.flops_per_s +
            exponentials / ceilings.exponentials_per_s) /
           seconds;
}

}  // namespace fa::exercise
