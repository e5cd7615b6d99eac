#include "chapters/07_gpt2_124m/attention_statistics.h"

#include <omp.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "chapters/07_gpt2_124m/layers.h"
#include "common/larger.h"

namespace fa {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Query rows whose scores are in memory at a time.
constexpr std::int64_t BLOCK_ROWS = 128;

/// What one thread needs, taken before they start: no exception may leave a parallel region.
struct Scratch {
    Matrix keys, queries, scores;
    void resize(const AttentionProblem& problem) {
        keys.resize(problem.len_kv, problem.head_dim);
        queries.resize(BLOCK_ROWS, problem.head_dim);
        scores.resize(BLOCK_ROWS, problem.len_kv);
    }
};

/// The first `count` rows of `rows` become tokens `first` and on of a head.
template <class T>
void rows_in_fp32(const View<const T>& view, std::int64_t batch, std::int64_t head,
                  std::int64_t first, std::int64_t count, Matrix& rows) {
    for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t d = 0; d < view.shape.dim; ++d)
            rows(i, d) = static_cast<float>(view.row(batch, head, first + i)[d]);
}

template <class T>
double largest_of_head(const AttentionProblem& problem, const AttentionTensors& tensors,
                       std::int64_t batch, std::int64_t head, Scratch& scratch) {
    rows_in_fp32(tensors.k.as<T>(), batch, problem.head_kv(head), 0, problem.len_kv, scratch.keys);
    double largest = 0;
    for (std::int64_t first = 0; first < problem.len_q; first += BLOCK_ROWS) {
        const std::int64_t count = std::min(BLOCK_ROWS, problem.len_q - first);
        const std::int64_t visible = problem.visible_keys(first + count - 1);
        rows_in_fp32(tensors.q.as<T>(), batch, head, first, count, scratch.queries);
        auto scores = scratch.scores.topLeftCorner(count, visible);
        scores.noalias() =
            scratch.queries.topRows(count) * scratch.keys.topRows(visible).transpose();
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t of_row = problem.visible_keys(first + i);
            if (of_row == 0) continue;
            const float row = scores.row(i).head(of_row).cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
            largest = larger_or_nan(static_cast<double>(row), largest);
        }
    }
    return largest * std::abs(static_cast<double>(problem.effective_scale()));
}

}  // namespace

double largest_score(const AttentionProblem& problem, const AttentionTensors& tensors,
                     int threads) {
    return with_element_type(problem.dtype, [&](auto tag) {
        using T = decltype(tag);
        const std::int64_t heads = problem.batch * problem.heads_q;
        std::vector<double> of_heads(static_cast<std::size_t>(heads));
        const int team = Arithmetic{problem.dtype, threads}.thread_count();
        std::vector<Scratch> scratch(static_cast<std::size_t>(team));
        for (Scratch& of_thread : scratch) of_thread.resize(problem);
#pragma omp parallel for schedule(dynamic) num_threads(team)
        for (std::int64_t i = 0; i < heads; ++i)
            of_heads[static_cast<std::size_t>(i)] =
                largest_of_head<T>(problem, tensors, i / problem.heads_q, i % problem.heads_q,
                                   scratch[static_cast<std::size_t>(omp_get_thread_num())]);
        double largest = 0;
        for (const double of_head : of_heads) largest = larger_or_nan(of_head, largest);
        return largest;
    });
}

std::vector<double> largest_scores(const Gpt2& model, const ForwardOptions& options,
                                   std::span<const std::int32_t> tokens, const EvaluationPlan& plan,
                                   const std::function<void(std::int64_t)>& advance) {
    std::vector<double> largest(static_cast<std::size_t>(model.config.layers), 0.0);
    ForwardOptions watched = options;
    watched.observer = [&](std::int64_t layer, const AttentionProblem& problem,
                           const AttentionTensors& tensors) {
        double& of_layer = largest[static_cast<std::size_t>(layer)];
        of_layer = larger_or_nan(largest_score(problem, tensors, options.threads), of_layer);
    };
    for_each_batch(model, watched, tokens, plan,
                   [&](std::int64_t batch, std::int64_t, std::span<const float>,
                       std::span<const std::int32_t>) {
                       if (advance) advance(batch);
                   });
    return largest;
}

double bf16_step(double value) {
    if (!std::isfinite(value)) return std::numeric_limits<double>::quiet_NaN();
    return value == 0 ? 0 : std::ldexp(1.0, std::ilogb(value) - 7);
}

}  // namespace fa
