#include "chapters/06_benchmark/errors.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "chapters/01_memory_accounting/naive_attention.h"
#include "common/aligned_buffer.h"
#include "common/larger.h"
#include "common/random.h"
#include "common/reference_attention.h"

namespace fa {
namespace {

constexpr std::size_t ROWS_PER_GROUP = 32;
constexpr int DRAWN_ROWS = 12;

/// One query of one head with the keys it sees, as a problem of its own.
template <class T>
struct OneRow {
    AttentionProblem problem;
    std::vector<T> q, k, v, o;

    OneRow(const AttentionProblem& p, const AttentionTensors& t, const CopyToHost& copy,
           std::int64_t b, std::int64_t h, std::int64_t i)
        : problem{.len_q = 1,
                  .len_kv = p.visible_keys(i),
                  .head_dim = p.head_dim,
                  .dtype = p.dtype,
                  .scale = p.effective_scale()} {
        const auto fetch = [&](const T* from, std::int64_t rows) {
            std::vector<T> to(static_cast<std::size_t>(rows * p.head_dim));
            copy(to.data(), from, to.size() * sizeof(T));
            return to;
        };
        q = fetch(t.q.as<T>().row(b, h, i), 1);
        k = fetch(t.k.as<T>().row(b, p.head_kv(h), 0), problem.len_kv);
        v = fetch(t.v.as<T>().row(b, p.head_kv(h), 0), problem.len_kv);
        o = fetch(t.o.as<T>().row(b, h, i), 1);
    }

    AttentionTensors tensors(std::vector<T>& output) const {
        const Shape one = problem.q_shape(), keys = problem.kv_shape();
        return {.q = View<const T>{q.data(), one, Strides::dense(one)},
                .k = View<const T>{k.data(), keys, Strides::dense(keys)},
                .v = View<const T>{v.data(), keys, Strides::dense(keys)},
                .o = View<T>{output.data(), one, Strides::dense(one)},
                .lse = {}};
    }
};

template <class T>
std::vector<float> widened(const std::vector<T>& from) {
    std::vector<float> to(from.size());
    std::ranges::transform(from, to.begin(), [](T x) { return static_cast<float>(x); });
    return to;
}

template <class T>
SpotCheck spot_check_typed(const AttentionProblem& p, const AttentionTensors& t,
                           const CopyToHost& copy, std::uint64_t seed) {
    SpotCheck result;
    if (p.batch * p.len_q == 0) return result;
    Random random(seed);
    const auto draw = [&](std::int64_t n) {
        return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(n)));
    };
    double naive_relative = 0, relative = 0;
    for (int n = 0; n < DRAWN_ROWS + 2; ++n) {
        const bool first = n == 0, last = n == 1;
        const std::int64_t b = first ? 0 : last ? p.batch - 1 : draw(p.batch);
        const std::int64_t h = first ? 0 : last ? p.heads_q - 1 : draw(p.heads_q);
        const std::int64_t i = first ? 0 : last ? p.len_q - 1 : draw(p.len_q);
        OneRow<T> row(p, t, copy, b, h, i);
        std::vector<T> naive(row.o.size());
        const AttentionTensors tensors = row.tensors(naive);
        const Launch one_thread{.threads = 1};
        AlignedBuffer workspace(CPU_NAIVE.workspace_bytes(row.problem, one_thread));
        attention(CPU_NAIVE, row.problem, tensors, workspace.bytes(), one_thread);

        const std::vector<double> gold = reference_attention(row.problem, tensors).o;
        const Errors errors = errors_of(widened(row.o), gold, p.head_dim);
        result.largest = larger_or_nan(result.largest, errors.largest);
        relative = larger_or_nan(relative, errors.relative);
        naive_relative =
            larger_or_nan(naive_relative, errors_of(widened(naive), gold, p.head_dim).relative);
    }
    result.share = relative / relative_bound(p, naive_relative);
    return result;
}

}  // namespace

Errors errors_of(std::span<const float> o, std::span<const double> gold, std::int64_t head_dim) {
    if (o.size() != gold.size())
        throw std::invalid_argument("an output and its gold differ in size");
    Errors errors;
    double squares = 0;
    const std::size_t group = ROWS_PER_GROUP * static_cast<std::size_t>(head_dim);
    for (std::size_t begin = 0; begin < o.size(); begin += group) {
        double size = 0, error = 0;
        for (std::size_t n = begin; n < std::min(begin + group, o.size()); ++n) {
            const double difference = std::fabs(static_cast<double>(o[n]) - gold[n]);
            error = larger_or_nan(error, difference);
            size = larger_or_nan(size, std::fabs(gold[n]));
            squares += difference * difference;
        }
        errors.largest = larger_or_nan(errors.largest, error);
        // Where the gold is 0 throughout, any difference is infinitely wrong.
        errors.relative = larger_or_nan(errors.relative, error == 0 ? 0 : error / size);
    }
    errors.rms = o.empty() ? 0 : std::sqrt(squares / static_cast<double>(o.size()));
    return errors;
}

double relative_bound(const AttentionProblem& p, double naive_relative) {
    return 2 * naive_relative + 2 * roundoff(p.dtype) +
           std::sqrt(static_cast<double>(p.len_kv)) * 0x1p-24;
}

SpotCheck spot_check(const AttentionProblem& problem, const AttentionTensors& tensors,
                     const CopyToHost& copy, std::uint64_t seed) {
    return with_element_type(problem.dtype, [&](auto element) {
        return spot_check_typed<decltype(element)>(problem, tensors, copy, seed);
    });
}

}  // namespace fa
