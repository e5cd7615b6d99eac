#include "tests/suite_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

#include "chapters/implementations.h"
#include "common/larger.h"

namespace fa::suite {

std::string describe(const SuiteCase& c) {
    std::string text = fmt::format("{}, {}", describe(c.problem), name_of(c.pattern));
    if (c.problem.scale) text += fmt::format(", scale {}", *c.problem.scale);
    if (c.seed != 1) text += fmt::format(", seed {}", c.seed);
    return text;
}

std::string label_of(const Implementation& implementation, const std::string& what,
                     const RunOptions& options) {
    std::string text = fmt::format("{}: {}", implementation.name, what);
    if (options.layout != Layout::gaps) text += fmt::format(", {}", name_of(options.layout));
    if (options.threads != 0) text += fmt::format(", {} threads", options.threads);
    if (options.phase != 0) text += fmt::format(", {} bytes off alignment", options.phase);
    return text;
}

bool supports(const Implementation& implementation, const AttentionProblem& problem) {
    return implementation.why_unsupported(problem).empty();
}

std::vector<DType> dtypes_of(const Implementation& implementation) {
    std::vector<DType> dtypes;
    for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
        AttentionProblem p{.len_q = 128, .len_kv = 128, .head_dim = 64, .dtype = dtype};
        bool all = supports(implementation, p);
        p.causal = true;
        all = all && supports(implementation, p);
        if (all) dtypes.push_back(dtype);
    }
    if (dtypes.empty())
        throw std::runtime_error(fmt::format("{} takes no element type at d = 64: nothing to check",
                                             implementation.name));
    return dtypes;
}

std::vector<DType> dtypes_of_long_check(const Implementation& implementation) {
    const std::vector<DType> all = dtypes_of(implementation);
    if (implementation.device != Device::executor) return all;
    return {std::find(all.begin(), all.end(), DType::bf16) != all.end() ? DType::bf16
                                                                        : all.front()};
}

std::int64_t longest_length(const Implementation& implementation) {
    return implementation.device == Device::executor ? 600
                                                     : std::numeric_limits<std::int64_t>::max();
}

namespace {

/// The naive implementation, whose error is the yardstick.
const Implementation& yardstick() {
    return implementation_named("cpu_naive");
}

double largest(const std::vector<float>& values) {
    double m = 0;
    for (float value : values)
        if (std::isfinite(value)) m = std::max(m, std::fabs(static_cast<double>(value)));
    return m;
}

double largest_norm(const std::vector<float>& rows, std::int64_t dim) {
    double m = 0;
    for (std::size_t row = 0; row < rows.size(); row += idx(dim)) {
        double sum = 0;
        for (std::size_t c = 0; c < idx(dim); ++c) {
            const auto x = static_cast<double>(rows[row + c]);
            sum += x * x;
        }
        if (std::isfinite(sum)) m = std::max(m, std::sqrt(sum));
    }
    return m;
}

/// Calls function(group, index) for each of `per_row` values of every row of O or LSE.
template <class Function>
void for_each_value(const AttentionProblem& p, std::int64_t per_row, Function&& function) {
    std::size_t index = 0;
    for (std::int64_t bh = 0; bh < p.batch * p.heads_q; ++bh)
        for (std::int64_t i = 0; i < p.len_q; ++i)
            for (std::int64_t c = 0; c < per_row; ++c) function(idx(i / ROWS_PER_GROUP), index++);
}

/// The cap of the error rule, for scores rounded to `score_roundoff`.
struct Cap {
    double o, lse;
};
Cap cap_of(const AttentionProblem& p, const Prepared& known, double score_roundoff) {
    // Roundings on the way of a score and of a weight. Where one product of the dot product
    // outweighs the others, each of the d additions rounds at full size: four standard deviations
    // of that.
    const double few = known.extreme ? 4 + 2 * std::sqrt(static_cast<double>(p.head_dim)) : 4;
    const double score_error = few * score_roundoff * (4 + known.score_bound);
    return {(2 * roundoff(p.dtype) + score_error) * known.max_v, score_error};
}

/// Size and error of each group of rows: the largest finite |gold| and the largest error.
struct Group {
    double size = 0, error = 0;
};
std::vector<Group> groups_of(const AttentionProblem& p, std::int64_t per_row,
                             const std::vector<float>& result, const std::vector<double>& gold) {
    std::vector<Group> groups(idx((p.len_q + ROWS_PER_GROUP - 1) / ROWS_PER_GROUP));
    for_each_value(p, per_row, [&](std::size_t g, std::size_t n) {
        const auto value = static_cast<double>(result[n]);
        if (std::isfinite(gold[n])) groups[g].size = std::max(groups[g].size, std::fabs(gold[n]));
        if (value == gold[n]) return;  // equal infinities have no difference
        const double error = std::fabs(value - gold[n]);
        groups[g].error = larger_or_nan(groups[g].error, error);
    });
    return groups;
}

/// Twice the yardstick's relative error, the largest of all groups, plus `floor`, times each
/// group's size; at most `cap`. Groups of rows differ in size, and a small one is too few samples
/// to judge by.
std::vector<double> limits(const std::vector<Group>& groups, double floor, double least_size,
                           double cap, bool cap_alone) {
    double relative = 0;
    for (const Group& g : groups)
        if (const double r = g.error / std::max(g.size, least_size); g.error > 0)
            relative = std::max(relative, r);
    std::vector<double> result;
    for (const Group& g : groups) {
        const double limit = (2 * relative + floor) * std::max(g.size, least_size);
        // Written so that a NaN in the yardstick gives the cap.
        result.push_back(!cap_alone && !std::isnan(g.error) && limit <= cap ? limit : cap);
    }
    return result;
}

/// The error rule.
Bounds make_bounds(const AttentionProblem& p, const Prepared& known) {
    const Run naive = run_case(yardstick(), p, known.inputs);
    const Cap cap = cap_of(p, known, roundoff(DType::f32));
    constexpr double U = 0x1p-24;
    const double terms = std::sqrt(static_cast<double>(p.len_kv));
    const double products = std::sqrt(static_cast<double>(p.head_dim));
    return {limits(groups_of(p, p.head_dim, naive.o, known.gold.o),
                   2 * roundoff(p.dtype) + terms * U, 0, cap.o, known.extreme),
            limits(groups_of(p, 1, naive.lse, known.gold.lse), (2 + terms + products) * U, 1,
                   cap.lse, known.extreme)};
}

}  // namespace

ReferenceResult gold_of(const AttentionProblem& problem, const Inputs& inputs) {
    AttentionProblem widened = problem;  // the same values, held in fp32
    widened.dtype = DType::f32;
    AttentionTensors tensors;
    tensors.q = {inputs.q.data(), DType::f32, problem.q_shape(), Strides::dense(problem.q_shape())};
    tensors.k = {inputs.k.data(), DType::f32, problem.kv_shape(),
                 Strides::dense(problem.kv_shape())};
    tensors.v = {inputs.v.data(), DType::f32, problem.kv_shape(),
                 Strides::dense(problem.kv_shape())};
    return reference_attention(widened, tensors);
}

Prepared prepare(const AttentionProblem& p, Inputs inputs, bool extreme) {
    Prepared known;
    known.extreme = extreme;
    known.inputs = std::move(inputs);
    known.gold = gold_of(p, known.inputs);
    known.max_v = largest(known.inputs.v);
    known.score_bound = std::fabs(static_cast<double>(p.effective_scale())) *
                        largest_norm(known.inputs.q, p.head_dim) *
                        largest_norm(known.inputs.k, p.head_dim);
    known.bounds = make_bounds(p, known);
    return known;
}

const Prepared& prepared(const SuiteCase& c) {
    static std::map<std::string, Prepared> known_cases;
    const std::string key = describe(c);
    const auto place = known_cases.find(key);
    if (place != known_cases.end()) return place->second;
    const bool extreme = c.pattern != Pattern::normal && c.pattern != Pattern::last_channel;
    return known_cases.emplace(key, prepare(c.problem, make_inputs(c), extreme)).first->second;
}

Bounds bounds_for(const Implementation& implementation, const AttentionProblem& p,
                  const Prepared& known) {
    // S in 16 bits, bf16 being the coarser: what that does to a model is the point of chapter 7.
    if (!implementation.rounds_scores) return known.bounds;
    const Cap cap = cap_of(p, known, roundoff(DType::bf16));
    Bounds wide = known.bounds;
    std::fill(wide.o.begin(), wide.o.end(), cap.o);
    std::fill(wide.lse.begin(), wide.lse.end(), cap.lse);
    return wide;
}

namespace {

/// One of the two comparisons. `where` names an element for a reader.
template <class Where>
void compare_values(Failures& failures, const std::string& label, const AttentionProblem& p,
                    std::int64_t per_row, const std::vector<float>& result,
                    const std::vector<double>& gold, const std::vector<double>& bounds,
                    Where&& where) {
    std::int64_t wrong = 0;
    double worst = -1;
    std::string example;
    for_each_value(p, per_row, [&](std::size_t group, std::size_t n) {
        const auto value = static_cast<double>(result[n]);
        const double error = std::fabs(value - gold[n]);
        const bool fine = std::isnan(gold[n])   ? std::isnan(value)
                          : std::isinf(gold[n]) ? value == gold[n]
                                                : error <= bounds[group];
        if (fine) return;
        ++wrong;
        const double weight = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
        if (weight <= worst) return;
        worst = weight;
        example =
            fmt::format("{} is {}, gold {}, error {:.3g}, bound {:.3g}",
                        where(static_cast<std::int64_t>(n)), value, gold[n], error, bounds[group]);
    });
    if (wrong > 0)
        failures.push_back(
            fmt::format("{}: {} of {} values wrong; {}", label, wrong, result.size(), example));
}

}  // namespace

void compare(Failures& failures, const std::string& label, const AttentionProblem& p,
             const Run& run, const ReferenceResult& gold, const Bounds& bounds) {
    for (const std::string& fault : run.faults) failures.push_back(label + ": " + fault);
    const auto row_name = [&](std::int64_t row) {
        return fmt::format("{}, {}, {}", row / p.len_q / p.heads_q, row / p.len_q % p.heads_q,
                           row % p.len_q);
    };
    compare_values(failures, label, p, p.head_dim, run.o, gold.o, bounds.o, [&](std::int64_t n) {
        return fmt::format("O[{}, {}]", row_name(n / p.head_dim), n % p.head_dim);
    });
    if (!run.lse.empty())
        compare_values(failures, label, p, 1, run.lse, gold.lse, bounds.lse,
                       [&](std::int64_t n) { return fmt::format("LSE[{}]", row_name(n)); });
}

void check_prepared(Failures& failures, const Implementation& implementation,
                    const std::string& label, const AttentionProblem& p, const Prepared& known,
                    const Run& run) {
    compare(failures, label, p, run, known.gold, bounds_for(implementation, p, known));
}

void check_case(Failures& failures, const Implementation& implementation, const SuiteCase& c,
                const RunOptions& options) {
    if (!supports(implementation, c.problem)) return;
    const Prepared& known = prepared(c);
    check_prepared(failures, implementation, label_of(implementation, describe(c), options),
                   c.problem, known, run_case(implementation, c.problem, known.inputs, options));
}

}  // namespace fa::suite
