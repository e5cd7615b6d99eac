#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "tests/suite_case.h"
#include "tests/suite_checks.h"

namespace fa::suite {
namespace {

constexpr float NOT_A_NUMBER = std::numeric_limits<float>::quiet_NaN();
constexpr float INF = std::numeric_limits<float>::infinity();

/// Fills one row of dense [row, dim] values.
void set_row(std::vector<float>& values, std::int64_t head_dim, std::int64_t row, float value) {
    for (std::int64_t c = 0; c < head_dim; ++c) values[idx(row * head_dim + c)] = value;
}

/// One head, causal or full, with the clean run to compare with.
struct Clean {
    SuiteCase c;
    Run run;
    Bounds bounds;    ///< what the implementation may err
    bool to_the_bit;  ///< whether another way to compute a row is no excuse
};

/// True if row `i` of the only head is the same: in every bit, or, for an implementation that
/// computes rows beside a NaN in another way, within what both runs may err.
bool same_row(const Clean& clean, const Run& changed, std::int64_t i) {
    const std::size_t d = idx(clean.c.problem.head_dim), row = idx(i);
    const float *a = &clean.run.o[row * d], *b = &changed.o[row * d];
    const float a_lse = clean.run.lse[row], b_lse = changed.lse[row];
    if (clean.to_the_bit)
        return std::memcmp(a, b, d * sizeof(float)) == 0 &&
               std::memcmp(&a_lse, &b_lse, sizeof(float)) == 0;
    const std::size_t group = idx(i / ROWS_PER_GROUP);
    for (std::size_t c = 0; c < d; ++c)
        if (!(std::abs(a[c] - b[c]) <= 2 * clean.bounds.o[group])) return false;
    return a_lse == b_lse || std::abs(a_lse - b_lse) <= 2 * clean.bounds.lse[group];
}

/// Rows that do not see what was changed must not change.
template <class Sees>
void expect_unchanged(Failures& failures, const std::string& label, const Clean& clean,
                      const Run& changed, Sees&& sees) {
    const AttentionProblem& p = clean.c.problem;
    for (std::int64_t i = 0; i < p.len_q; ++i)
        if (!sees(i) && !same_row(clean, changed, i)) {
            failures.push_back(
                fmt::format("{}: row {} changed, O[0] from {} to {}, LSE from {} to {}", label, i,
                            clean.run.o[idx(i * p.head_dim)], changed.o[idx(i * p.head_dim)],
                            clean.run.lse[idx(i)], changed.lse[idx(i)]));
            return;
        }
}

Clean clean_run(const Implementation& implementation, DType dtype, std::int64_t len_q,
                std::int64_t len_kv, std::int64_t head_dim, bool causal) {
    const SuiteCase c{.problem = {.len_q = len_q,
                                  .len_kv = len_kv,
                                  .head_dim = head_dim,
                                  .dtype = dtype,
                                  .causal = causal}};
    return {c, run_case(implementation, c.problem, prepared(c).inputs),
            bounds_for(implementation, c.problem, prepared(c)), !implementation.recomputes_rows};
}

}  // namespace

Failures check_masked_keys(const Implementation& implementation) {
    Failures failures;
    for (DType dtype : dtypes_of_long_check(implementation)) {
        // One bad key at a time: rows before it do not see it.
        const Clean clean = clean_run(implementation, dtype, 290, 290, 64, true);
        const SuiteCase& c = clean.c;
        const AttentionProblem& p = c.problem;
        for (float bad : {NOT_A_NUMBER, INF, -INF})
            for (std::int64_t key : {1, 16, 17, 31, 63, 64, 65, 127, 128, 200, 255, 256, 289}) {
                Inputs inputs = prepared(c).inputs;
                set_row(inputs.k, p.head_dim, key, bad);
                set_row(inputs.v, p.head_dim, key, bad);
                expect_unchanged(
                    failures,
                    fmt::format("{}: {}, key {} is {}", implementation.name, describe(c), key, bad),
                    clean, run_case(implementation, p, inputs),
                    [&](std::int64_t i) { return i >= key; });
            }
        // Each of K and V alone: a 0 in P times a NaN in V is NaN, whatever the scores are.
        for (bool in_v : {false, true}) {
            Inputs inputs = prepared(c).inputs;
            for (std::int64_t key = 100; key < 290; ++key)
                set_row(in_v ? inputs.v : inputs.k, p.head_dim, key, NOT_A_NUMBER);
            expect_unchanged(failures,
                             fmt::format("{}: {}, {} is NaN from key 100 on", implementation.name,
                                         describe(c), in_v ? "V" : "K"),
                             clean, run_case(implementation, p, inputs),
                             [&](std::int64_t i) { return i >= 100; });
        }
        // Unequal lengths: key j belongs to row j − (len_kv − len_q).
        for (const auto& [len_q, len_kv] : {std::pair<int, int>{100, 230}, {230, 100}}) {
            const Clean clean2 = clean_run(implementation, dtype, len_q, len_kv, 64, true);
            const SuiteCase& c2 = clean2.c;
            for (std::int64_t key : {0, 50, 64, 99}) {
                const std::int64_t first_row = key - (len_kv - len_q);
                Inputs inputs = prepared(c2).inputs;
                set_row(inputs.k, 64, key, NOT_A_NUMBER);
                set_row(inputs.v, 64, key, NOT_A_NUMBER);
                expect_unchanged(
                    failures,
                    fmt::format("{}: {}, key {} is NaN", implementation.name, describe(c2), key),
                    clean2, run_case(implementation, c2.problem, inputs),
                    [&](std::int64_t i) { return i >= first_row; });
            }
        }
    }
    return failures;
}

namespace {

enum class Target { q, k, v_row, v_channel };

/// The gold of spoilt inputs, computed once for all implementations.
const ReferenceResult& remembered_gold(const std::string& key, const AttentionProblem& problem,
                                       const Inputs& inputs) {
    static std::map<std::string, ReferenceResult> known;
    const auto place = known.find(key);
    if (place != known.end()) return place->second;
    return known.emplace(key, gold_of(problem, inputs)).first->second;
}

/// Puts one NaN into the inputs and compares with the gold, in which it has spread as it should.
void check_one_nan(Failures& failures, const Implementation& implementation, const Clean& clean,
                   Target target, std::int64_t token) {
    const AttentionProblem& p = clean.c.problem;
    const std::int64_t d = p.head_dim;
    Inputs inputs = prepared(clean.c).inputs;
    switch (target) {
        case Target::q: inputs.q[idx(token * d + d / 2)] = NOT_A_NUMBER; break;
        case Target::k: inputs.k[idx(token * d + d - 1)] = NOT_A_NUMBER; break;
        case Target::v_row: set_row(inputs.v, d, token, NOT_A_NUMBER); break;
        case Target::v_channel: inputs.v[idx(token * d + d / 2)] = NOT_A_NUMBER; break;
    }
    const std::string label =
        fmt::format("{}: {}, NaN in {} at token {}", implementation.name, describe(clean.c),
                    target == Target::q   ? "Q"
                    : target == Target::k ? "K"
                                          : "V",
                    token);
    // Old contents of O must not be what makes a row NaN.
    const Run run = run_case(implementation, p, inputs, {.fill = Fill::number});
    const std::string key =
        fmt::format("{} {} {}", describe(clean.c), static_cast<int>(target), token);
    compare(failures, label, p, run, remembered_gold(key, p, inputs),
            bounds_for(implementation, p, prepared(clean.c)));
    expect_unchanged(failures, label, clean, run, [&](std::int64_t i) {
        if (target == Target::q) return i == token;
        return !p.causal || token <= i + p.len_kv - p.len_q;
    });
}

}  // namespace

Failures check_visible_nan(const Implementation& implementation) {
    Failures failures;
    for (DType dtype : dtypes_of_long_check(implementation))
        for (bool causal : {false, true}) {
            // Vectorised maxima see a NaN in some positions and miss it in others.
            const Clean small = clean_run(implementation, dtype, 17, 17, 24, causal);
            const Clean tiles = clean_run(implementation, dtype, 200, 270, 64, causal);
            const Clean wide = clean_run(implementation, dtype, 270, 140, 64, causal);
            for (Target target : {Target::q, Target::k, Target::v_row, Target::v_channel}) {
                for (std::int64_t token = 0; token < 17; ++token)
                    check_one_nan(failures, implementation, small, target, token);
                for (std::int64_t token : {0, 31, 63, 64, 127, 128, 199})
                    check_one_nan(failures, implementation, tiles, target, token);
                for (std::int64_t token : {0, 64, 127, 128, 139})
                    check_one_nan(failures, implementation, wide, target, token);
            }
            if (!causal)
                for (std::int64_t token : {255, 256, 269})
                    check_one_nan(failures, implementation, tiles, Target::k, token);
        }
    return failures;
}

}  // namespace fa::suite
