#pragma once
/// @file
/// Exercise: what heads that share keys and values cost. Fill in both functions and run
///
///     scripts/exercise.sh 1

#include "common/attention.h"

namespace fa::exercise {

/// Bytes of Q, K, V and O together. Use problem.batch, heads_q, heads_kv, len_q, len_kv, head_dim,
/// and size_of(problem.dtype) for the bytes of an element.
inline double held_bytes([[maybe_unused]] const AttentionProblem& problem) {
    return 0;  // your formula
}

/// Bytes of the key/value cache: K and V of len_kv tokens, in each of `layers` layers.
inline double cache_bytes([[maybe_unused]] const AttentionProblem& problem,
                          [[maybe_unused]] std::int64_t layers) {
    return 0;  // your formula
}

}  // namespace fa::exercise
