#pragma once
/// @file
/// Owns what a problem needs: random Q, K and V, and room for O and LSE.

#include <utility>
#include <vector>

#include "common/attention.h"
#include "common/random.h"
#include "common/tensor.h"

namespace fa {

/// Dense tensors of one problem, Q, K and V standard-normal from a seed.
/// @tparam T the element type that `problem.dtype` names
template <class T>
struct AttentionData {
    Tensor<T> q, k, v, o;
    std::vector<float> lse;  ///< [batch, heads_q, len_q]

    AttentionData(const AttentionProblem& problem, std::uint64_t seed)
        : q(problem.q_shape()),
          k(problem.kv_shape()),
          v(problem.kv_shape()),
          o(problem.q_shape()),
          lse(static_cast<std::size_t>(problem.batch * problem.heads_q * problem.len_q)) {
        Random random(seed);
        random.fill_normal(q);
        random.fill_normal(k);
        random.fill_normal(v);
    }

    /// Views of all five. They hold as long as this object stays where it is.
    AttentionTensors tensors() {
        const Shape& s = o.shape();
        return {.q = std::as_const(q).view(),
                .k = std::as_const(k).view(),
                .v = std::as_const(v).view(),
                .o = o.view(),
                .lse = {lse.data(), s.heads * s.tokens, s.tokens}};
    }
};

}  // namespace fa
