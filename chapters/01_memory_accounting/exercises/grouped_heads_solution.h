#pragma once
/// @file
/// Solution of the exercise on heads that share keys and values.
///
/// Q and O have a row for each query of each query head, K and V one for each key of each key/value
/// head. Grouping shrinks the latter alone: with 12 heads on 3, Q+K+V+O falls to 2·12 + 2·3 = 30
/// parts of 48, and the cache, which holds nothing but K and V, to a quarter. That is why models
/// that write long texts have grouped heads.

#include "common/attention.h"

namespace fa::exercise {

/// Bytes of Q, K, V and O together.
inline double held_bytes(const AttentionProblem& problem) {
    const double rows = static_cast<double>(problem.heads_q * problem.len_q) +
                        static_cast<double>(problem.heads_kv * problem.len_kv);
    return 2 * static_cast<double>(problem.batch) * rows * static_cast<double>(problem.head_dim) *
           static_cast<double>(size_of(problem.dtype));
}

/// Bytes of the key/value cache.
inline double cache_bytes(const AttentionProblem& problem, std::int64_t layers) {
    return 2 * static_cast<double>(layers * problem.batch * problem.heads_kv) *
           static_cast<double>(problem.len_kv * problem.head_dim) *
           static_cast<double>(size_of(problem.dtype));
}

}  // namespace fa::exercise
