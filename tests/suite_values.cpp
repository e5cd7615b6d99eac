#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "tests/suite_case.h"
#include "tests/suite_checks.h"

namespace fa::suite {
namespace {

constexpr double INF = std::numeric_limits<double>::infinity();

/// A problem whose answer is known without a reference: one batch, one head.
struct Known {
    std::string name;
    AttentionProblem problem;
    Inputs inputs;
    ReferenceResult expected;
};

/// One row after another, each padded with zeros to the head dimension.
std::vector<float> rows(const std::vector<std::vector<float>>& values, std::int64_t head_dim) {
    std::vector<float> padded;
    for (std::vector<float> row : values) {
        row.resize(idx(head_dim), 0.0f);
        padded.insert(padded.end(), row.begin(), row.end());
    }
    return padded;
}

/// Compares with a tolerance of a few roundings of the largest expected value; 0 and −∞ exactly.
void check_known(Failures& failures, const Implementation& implementation, const Known& known) {
    if (!supports(implementation, known.problem)) return;
    double largest = 0, largest_lse = 1;
    for (double o : known.expected.o) largest = std::fmax(largest, std::fabs(o));
    for (double lse : known.expected.lse)
        if (std::isfinite(lse)) largest_lse = std::fmax(largest_lse, std::fabs(lse));
    // Inputs such as 0.7 are rounded too, to the problem's type; and one entry rounds its scores.
    const double unit =
        implementation.rounds_scores ? roundoff(DType::bf16) : roundoff(known.problem.dtype);
    const std::size_t groups = idx(known.problem.len_q / ROWS_PER_GROUP + 1);
    // A sum of n keys in fp32 adds n roundings, in whatever order: √n of them at random.
    const double keys = std::sqrt(static_cast<double>(known.problem.len_kv)) * roundoff(DType::f32);
    const Bounds bounds{std::vector(groups, (8 * unit + keys) * largest),
                        std::vector(groups, (8 * unit + keys) * largest_lse)};
    Inputs inputs = known.inputs;
    for (auto* values : {&inputs.q, &inputs.k, &inputs.v})
        for (float& value : *values) value = rounded(value, known.problem.dtype);
    const Run run = run_case(implementation, known.problem, inputs);
    const std::string label =
        label_of(implementation, fmt::format("{} ({})", known.name, describe(known.problem)), {});
    compare(failures, label, known.problem, run, known.expected, bounds);
    for (std::size_t n = 0; n < run.o.size(); ++n)
        if (known.expected.o[n] == 0 && run.o[n] != 0)
            failures.push_back(fmt::format("{}: O is {} where it must be 0", label, run.o[n]));
}

/// Five queries, two keys: with the mask aligned bottom-right three rows see nothing.
Known more_queries_than_keys(DType dtype) {
    const std::int64_t d = 64;
    Known known{"causal, five queries and two keys",
                {.len_q = 5, .len_kv = 2, .head_dim = d, .dtype = dtype, .causal = true},
                {std::vector<float>(5 * 64, 1.0f), std::vector<float>(2 * 64, 0.0f), {}},
                {{}, {-INF, -INF, -INF, 0, std::log(2.0)}}};
    for (double value : {10, 20})
        known.inputs.v.insert(known.inputs.v.end(), 64, static_cast<float>(value));
    for (double value : {0, 0, 0, 10, 15})
        known.expected.o.insert(known.expected.o.end(), 64, value);
    return known;
}

/// Row 0 sees one key, whose score lies below any finite stand-in for −∞ such as −10⁴.
Known far_below_zero(DType dtype, std::int64_t d) {
    return {"a score of -20000",
            {.len_q = 2, .len_kv = 2, .head_dim = d, .dtype = dtype, .scale = 1.0f, .causal = true},
            {rows({{-20000}, {0}}, d), rows({{1}, {0}}, d), rows({{1}, {100}}, d)},
            {[&] {
                 std::vector<double> o(idx(2 * d), 0.0);
                 o[0] = 1;
                 o[idx(d)] = 50.5;
                 return o;
             }(),
             {rounded(-20000, dtype), std::log(2.0)}}};
}

/// Three tokens with two channels, causal; the LSE of scale 0 is the logarithm of the key count.
Known three_tokens(DType dtype, bool zero_scale) {
    Known known{
        zero_scale ? "three tokens, scale 0" : "three tokens, default scale",
        {.len_q = 3, .len_kv = 3, .head_dim = 2, .dtype = dtype, .causal = true},
        {{.1f, .2f, .3f, .4f, .5f, .6f}, {.7f, .8f, .9f, 1.0f, 1.1f, 1.2f}, {1, 2, 3, 4, 5, 6}},
        {}};
    if (zero_scale) {
        known.problem.scale = 0.0f;
        known.expected = {{1, 2, 2, 3, 3, 4}, {0, std::log(2.0), std::log(3.0)}};
    } else {
        const double s = std::sqrt(0.5);
        known.expected = {{1, 2, 2.049457, 3.049457, 3.206586, 4.206586},
                          {s * 0.23, std::log(std::exp(s * 0.53) + std::exp(s * 0.67)),
                           std::log(std::exp(s * 0.83) + std::exp(s * 1.05) + std::exp(s * 1.27))}};
    }
    return known;
}

}  // namespace

Failures check_known_values(const Implementation& implementation) {
    Failures failures;
    for (DType dtype : dtypes_of(implementation)) {
        check_known(failures, implementation, more_queries_than_keys(dtype));
        for (std::int64_t d : {1, 8, 64})
            check_known(failures, implementation, far_below_zero(dtype, d));
        for (bool zero_scale : {false, true})
            check_known(failures, implementation, three_tokens(dtype, zero_scale));
    }
    return failures;
}

Failures check_causal_means(const Implementation& implementation) {
    Failures failures;
    for (DType dtype : dtypes_of(implementation))
        for (std::int64_t d : {8, 64, 128})
            for (std::int64_t length : {64, 96, 97, 128, 129, 200, 256}) {
                const AttentionProblem p{.len_q = length,
                                         .len_kv = length,
                                         .head_dim = d,
                                         .dtype = dtype,
                                         .causal = true};
                Known known{"mean of the keys seen", p, {}, {}};
                known.inputs.q.assign(idx(length * d), 1.0f);
                known.inputs.k.assign(idx(length * d), 0.0f);
                for (std::int64_t i = 0; i < length; ++i) {
                    known.inputs.v.insert(known.inputs.v.end(), idx(d), static_cast<float>(i));
                    known.expected.o.insert(known.expected.o.end(), idx(d),
                                            static_cast<double>(i) / 2);
                    known.expected.lse.push_back(std::log(static_cast<double>(i + 1)));
                }
                check_known(failures, implementation, known);
            }
    return failures;
}

Failures check_scale(const Implementation& implementation) {
    Failures failures;
    for (DType dtype : dtypes_of(implementation)) {
        for (std::int64_t d : {24, 64, 80})
            for (float scale : {0.0f, 0.5f, 1.0f, -0.125f, -1.0f, 1e-6f})
                for (bool causal : {false, true})
                    check_case(failures, implementation,
                               {.problem = {.len_q = 70,
                                            .len_kv = 130,
                                            .head_dim = d,
                                            .dtype = dtype,
                                            .scale = scale,
                                            .causal = causal}});
        // The default is 1/√d of the real d, not of a padded one: the same bits as when it is
        // given.
        for (std::int64_t d : {1, 24, 63, 64, 72, 80, 128, 192}) {
            SuiteCase c{.problem = {.len_q = 66, .len_kv = 66, .head_dim = d, .dtype = dtype}};
            if (!supports(implementation, c.problem)) continue;
            const Inputs& inputs = prepared(c).inputs;
            const Run by_default = run_case(implementation, c.problem, inputs);
            AttentionProblem given = c.problem;
            given.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
            const Run explicitly = run_case(implementation, given, inputs);
            check_prepared(failures, implementation, label_of(implementation, describe(c), {}),
                           c.problem, prepared(c), by_default);
            if (!same_bits(by_default.o, explicitly.o) ||
                !same_bits(by_default.lse, explicitly.lse))
                failures.push_back(fmt::format("{}: d {}: the default scale is not 1/sqrt(d)",
                                               implementation.name, d));
        }
    }
    return failures;
}

}  // namespace fa::suite
