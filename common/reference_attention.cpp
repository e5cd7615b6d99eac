#include "common/reference_attention.h"

#include <cmath>
#include <limits>

namespace fa {
namespace {

template <class T>
ReferenceResult reference(const AttentionProblem& p, const AttentionTensors& t) {
    const auto q = t.q.as<T>(), k = t.k.as<T>(), v = t.v.as<T>();
    const double scale = static_cast<double>(p.effective_scale());
    ReferenceResult result;
    result.o.assign(static_cast<std::size_t>(p.q_shape().count()), 0.0);
    result.lse.assign(static_cast<std::size_t>(p.batch * p.heads_q * p.len_q), 0.0);

#pragma omp parallel for collapse(3) schedule(dynamic, 16)
    for (std::int64_t b = 0; b < p.batch; ++b)
        for (std::int64_t h = 0; h < p.heads_q; ++h)
            for (std::int64_t i = 0; i < p.len_q; ++i) {
                const std::int64_t row = (b * p.heads_q + h) * p.len_q + i;
                const std::int64_t keys = p.visible_keys(i);
                double* o = result.o.data() + row * p.head_dim;
                double& lse = result.lse[static_cast<std::size_t>(row)];
                lse = -std::numeric_limits<double>::infinity();
                if (keys == 0) continue;

                std::vector<double> scores(static_cast<std::size_t>(keys));
                double max = -std::numeric_limits<double>::infinity();
                for (std::int64_t j = 0; j < keys; ++j) {
                    const T* qi = q.row(b, h, i);
                    const T* kj = k.row(b, p.head_kv(h), j);
                    double dot = 0;
                    for (std::int64_t c = 0; c < p.head_dim; ++c)
                        dot += static_cast<double>(static_cast<float>(qi[c])) *
                               static_cast<double>(static_cast<float>(kj[c]));
                    scores[static_cast<std::size_t>(j)] = scale * dot;
                    max = std::fmax(max, scale * dot);  // fmax passes over NaN; exp below does not
                }
                // All visible scores −∞ (q·k overflowed): the row has no weight to share out, and is
                // treated like a row without keys. Subtracting 0 keeps −∞ − (−∞) out of it.
                const double shift = std::isinf(max) && max < 0 ? 0.0 : max;
                double sum = 0;
                for (double& score : scores) sum += (score = std::exp(score - shift));
                if (sum == 0) continue;
                for (std::int64_t j = 0; j < keys; ++j) {
                    const double weight = scores[static_cast<std::size_t>(j)] / sum;
                    const T* vj = v.row(b, p.head_kv(h), j);
                    for (std::int64_t c = 0; c < p.head_dim; ++c)
                        o[c] += weight * static_cast<double>(static_cast<float>(vj[c]));
                }
                lse = shift + std::log(sum);
            }
    return result;
}

}  // namespace

ReferenceResult reference_attention(const AttentionProblem& problem,
                                    const AttentionTensors& tensors) {
    validate(problem);
    AttentionTensors inputs = tensors;
    // O is not used here; any view of the right shape passes the check.
    inputs.o = TensorView(const_cast<void*>(tensors.q.data), problem.dtype, problem.q_shape(), {});
    validate(problem, inputs);
    return with_element_type(problem.dtype, [&](auto element) {
        return reference<decltype(element)>(problem, inputs);
    });
}

}  // namespace fa
