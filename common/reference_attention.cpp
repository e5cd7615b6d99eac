#include "common/reference_attention.h"

#include <omp.h>

#include <cmath>
#include <limits>
#include <vector>

namespace fa {
namespace {

/// The mask, spelled out. This file does not use AttentionProblem::visible_keys() or head_kv(), on
/// which the implementations rest: a gold that shared their mask would share its faults.
bool visible(const AttentionProblem& p, std::int64_t i, std::int64_t j) {
    return !p.causal || j <= i + p.len_kv - p.len_q;
}

template <class T>
ReferenceResult reference(const AttentionProblem& p, const AttentionTensors& t) {
    constexpr double INF = std::numeric_limits<double>::infinity();
    const auto q = t.q.as<T>(), k = t.k.as<T>(), v = t.v.as<T>();
    const double scale = static_cast<double>(p.effective_scale());
    const std::int64_t group = p.heads_q / p.heads_kv;  // query heads that share a key/value head
    ReferenceResult result;
    result.o.assign(static_cast<std::size_t>(p.q_shape().count()), 0.0);
    result.lse.assign(static_cast<std::size_t>(p.batch * p.heads_q * p.len_q), -INF);

    // A row of weights for each thread, taken here: no exception may leave a parallel region.
    const int threads = omp_get_max_threads();
    std::vector<std::vector<double>> rows(
        static_cast<std::size_t>(threads),
        std::vector<double>(static_cast<std::size_t>(p.len_kv), 0.0));
#pragma omp parallel for collapse(3) schedule(dynamic, 16) num_threads(threads)
    for (std::int64_t b = 0; b < p.batch; ++b)
        for (std::int64_t h = 0; h < p.heads_q; ++h)
            for (std::int64_t i = 0; i < p.len_q; ++i) {
                const std::int64_t row = (b * p.heads_q + h) * p.len_q + i;
                double* o = result.o.data() + row * p.head_dim;

                std::vector<double>& weights = rows[static_cast<std::size_t>(omp_get_thread_num())];
                double max = -INF;
                for (std::int64_t j = 0; j < p.len_kv; ++j) {
                    if (!visible(p, i, j)) continue;
                    const T* qi = q.row(b, h, i);
                    const T* kj = k.row(b, h / group, j);
                    double dot = 0;
                    for (std::int64_t c = 0; c < p.head_dim; ++c)
                        dot += static_cast<double>(static_cast<float>(qi[c])) *
                               static_cast<double>(static_cast<float>(kj[c]));
                    weights[static_cast<std::size_t>(j)] = scale * dot;
                    max = std::fmax(max, scale * dot);  // fmax passes over NaN; exp below does not
                }
                // No visible key, or every visible score −∞: no weight to share out. Subtracting 0
                // keeps −∞ − (−∞) = NaN out of it, and the sum below stays 0.
                const double shift = max == -INF ? 0.0 : max;
                double sum = 0;
                for (std::int64_t j = 0; j < p.len_kv; ++j) {
                    if (!visible(p, i, j)) continue;
                    double& weight = weights[static_cast<std::size_t>(j)];
                    sum += (weight = std::exp(weight - shift));
                }
                if (sum == 0) continue;
                for (std::int64_t j = 0; j < p.len_kv; ++j) {
                    if (!visible(p, i, j)) continue;
                    const double weight = weights[static_cast<std::size_t>(j)] / sum;
                    const T* vj = v.row(b, h / group, j);
                    for (std::int64_t c = 0; c < p.head_dim; ++c)
                        o[c] += weight * static_cast<double>(static_cast<float>(vj[c]));
                }
                result.lse[static_cast<std::size_t>(row)] = shift + std::log(sum);
            }
    return result;
}

}  // namespace

ReferenceResult reference_attention(const AttentionProblem& problem,
                                    const AttentionTensors& tensors) {
    validate(problem);
    AttentionTensors inputs = tensors;
    // O is not used here; any view of the right shape passes the check. Nor is LSE.
    inputs.o = TensorView(const_cast<void*>(tensors.q.data), problem.dtype, problem.q_shape(),
                          Strides::dense(problem.q_shape()));
    inputs.lse = {};
    validate(problem, inputs);
    return with_element_type(
        problem.dtype, [&](auto element) { return reference<decltype(element)>(problem, inputs); });
}

}  // namespace fa
