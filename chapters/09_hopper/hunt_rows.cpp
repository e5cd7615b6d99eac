#include "chapters/09_hopper/hunt_rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/cuda/check.h"
#include "common/half.h"
#include "common/larger.h"

namespace fa {
namespace {

/// Tokens of one head as fp64.
template <class T, class View>
std::vector<double> tokens_of(const View& view, std::int64_t batch, std::int64_t head,
                              std::int64_t first, std::int64_t count) {
    const std::int64_t dim = view.shape.dim;
    std::vector<T> bits(static_cast<std::size_t>(count * dim));
    const T* const from = static_cast<const T*>(view.data) + batch * view.strides.batch +
                          head * view.strides.head + first * view.strides.token;
    const auto row_bytes = static_cast<std::size_t>(dim) * sizeof(T);
    if (count > 0)
        FA_CUDA_CHECK(cudaMemcpy2D(
            bits.data(), row_bytes, from, static_cast<std::size_t>(view.strides.token) * sizeof(T),
            row_bytes, static_cast<std::size_t>(count), cudaMemcpyDeviceToHost));
    std::vector<double> numbers(bits.size());
    std::ranges::transform(bits, numbers.begin(),
                           [](T x) { return static_cast<double>(static_cast<float>(x)); });
    return numbers;
}

template <class T>
double error_over_bound(const AttentionProblem& p, const AttentionTensors& t, std::int64_t batch,
                        std::int64_t head, std::int64_t query) {
    const auto d = static_cast<std::size_t>(p.head_dim);
    const std::int64_t keys = p.visible_keys(query), head_kv = p.head_kv(head);
    const auto q = tokens_of<T>(t.q, batch, head, query, 1);
    const auto o = tokens_of<T>(t.o, batch, head, query, 1);
    const auto k = tokens_of<T>(t.k, batch, head_kv, 0, keys);
    const auto v = tokens_of<T>(t.v, batch, head_kv, 0, keys);
    std::vector<double> scores(static_cast<std::size_t>(keys)), sum(d, 0.0), sum_of_sizes(d, 0.0);
    for (std::size_t j = 0; j < scores.size(); ++j) {
        for (std::size_t c = 0; c < d; ++c) scores[j] += q[c] * k[j * d + c];
        scores[j] *= static_cast<double>(p.effective_scale());
    }
    const double most = keys > 0 ? *std::ranges::max_element(scores) : 0;
    double all = 0;
    for (std::size_t j = 0; j < scores.size(); ++j) {
        const double weight = std::exp(scores[j] - most);
        all += weight;
        for (std::size_t c = 0; c < d; ++c) {
            sum[c] += weight * v[j * d + c];
            sum_of_sizes[c] += weight * std::fabs(v[j * d + c]);
        }
    }
    double worst = 0;
    for (std::size_t c = 0; c < d; ++c) {
        const double expected = keys > 0 ? sum[c] / all : 0;
        const double bound =
            2.5 * roundoff(p.dtype) * (keys > 0 ? sum_of_sizes[c] / all : 0) + 1e-5;
        worst = larger_or_nan(worst, std::fabs(o[c] - expected) / bound);
    }
    return worst;
}

}  // namespace

double row_error_over_bound(const AttentionProblem& p, const AttentionTensors& t,
                            std::int64_t batch, std::int64_t head, std::int64_t query) {
    return p.dtype == DType::f16 ? error_over_bound<Float16>(p, t, batch, head, query)
                                 : error_over_bound<BFloat16>(p, t, batch, head, query);
}

}  // namespace fa
