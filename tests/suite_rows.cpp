#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "tests/suite_case.h"
#include "tests/suite_checks.h"

namespace fa::suite {
namespace {

/// Appends a failure for each run of rows that should be empty (O = 0, LSE = −∞) and is not.
void expect_empty(Failures& failures, const std::string& label, const AttentionProblem& p,
                  const Run& run, std::int64_t batch, std::int64_t first, std::int64_t count) {
    constexpr float INF = std::numeric_limits<float>::infinity();
    for (std::int64_t h = 0; h < p.heads_q; ++h)
        for (std::int64_t i = first; i < first + count; ++i) {
            const std::int64_t row = (batch * p.heads_q + h) * p.len_q + i;
            bool zero = true;
            for (std::int64_t c = 0; c < p.head_dim; ++c)
                zero = zero && run.o[idx(row * p.head_dim + c)] == 0;
            if (zero && run.lse[idx(row)] == -INF) continue;
            failures.push_back(
                fmt::format("{}: row {} of batch {} head {} has no weight to share out, but O[0] "
                            "is {} and LSE {}",
                            label, i, batch, h, run.o[idx(row * p.head_dim)], run.lse[idx(row)]));
            return;
        }
}

}  // namespace

Failures check_rows_without_keys(const Implementation& implementation) {
    constexpr std::array<std::pair<std::int64_t, std::int64_t>, 9> LENGTHS{
        {{5, 2}, {65, 64}, {129, 1}, {300, 100}, {257, 129}, {64, 0}, {1, 0}, {130, 0}, {700, 10}}};
    Failures failures;
    for (DType dtype : dtypes_of(implementation))
        for (const auto& [len_q, len_kv] : LENGTHS)
            for (bool causal : {false, true})
                for (Fill fill : {Fill::nan, Fill::number}) {
                    if (!causal && len_kv > 0) continue;  // every row sees a key
                    const SuiteCase c{.problem = {.batch = 2,
                                                  .heads_q = 2,
                                                  .heads_kv = 2,
                                                  .len_q = len_q,
                                                  .len_kv = len_kv,
                                                  .head_dim = 64,
                                                  .dtype = dtype,
                                                  .causal = causal}};
                    if (!supports(implementation, c.problem)) continue;
                    const RunOptions options{.fill = fill};
                    const Run run =
                        run_case(implementation, c.problem, prepared(c).inputs, options);
                    const std::string label = label_of(implementation, describe(c), options);
                    check_prepared(failures, implementation, label, c.problem, prepared(c), run);
                    for (std::int64_t b = 0; b < 2; ++b)
                        expect_empty(failures, label, c.problem, run, b, 0, len_q - len_kv);
                }
    return failures;
}

Failures check_minus_infinity_scores(const Implementation& implementation) {
    constexpr float INF = std::numeric_limits<float>::infinity();
    constexpr std::int64_t LENGTH = 336;
    Failures failures;
    for (DType dtype : dtypes_of_long_check(implementation))
        for (bool causal : {false, true}) {
            // Batch 0, 1, 2: a stretch of −∞ at the start, in the middle, at the end. Batch 3: all.
            // The stretch is long enough to fill whole tiles.
            constexpr std::array<std::pair<std::int64_t, std::int64_t>, 4> STRETCHES{
                {{0, 150}, {70, 200}, {200, LENGTH}, {0, LENGTH}}};
            const SuiteCase c{.problem = {.batch = 4,
                                          .len_q = LENGTH,
                                          .len_kv = LENGTH,
                                          .head_dim = 64,
                                          .dtype = dtype,
                                          .causal = causal}};
            const AttentionProblem& p = c.problem;
            Inputs inputs = prepared(c).inputs;
            for (std::size_t n = 0; n < inputs.q.size(); n += idx(p.head_dim)) inputs.q[n] = 1;
            for (std::int64_t b = 0; b < p.batch; ++b)
                for (std::int64_t j = STRETCHES[idx(b)].first; j < STRETCHES[idx(b)].second; ++j)
                    inputs.k[idx((b * LENGTH + j) * p.head_dim)] = -INF;
            // Where no key has weight there is nothing to weigh: O is 0 whatever V holds.
            std::fill(inputs.v.begin() + static_cast<std::ptrdiff_t>(3 * LENGTH * p.head_dim),
                      inputs.v.end(), std::numeric_limits<float>::quiet_NaN());
            const RunOptions options{.layout = Layout::dense};
            const Run run = run_case(implementation, p, inputs, options);
            const std::string label =
                label_of(implementation, describe(c) + ", scores of -inf", options);
            check_prepared(failures, implementation, label, p, prepare(p, inputs), run);
            if (causal) expect_empty(failures, label, p, run, 0, 0, STRETCHES[0].second);
            expect_empty(failures, label, p, run, 3, 0, LENGTH);

            // The batches in another order: the same bits, each in its new place. (336 floats fill
            // whole cache lines: vectorised sums may depend on how a row lies in them.)
            const auto reversed = [&](const std::vector<float>& values) {
                std::vector<float> result;
                const auto part = static_cast<std::ptrdiff_t>(values.size()) / 4;
                for (std::ptrdiff_t b = 3; b >= 0; --b)
                    result.insert(result.end(), values.begin() + b * part,
                                  values.begin() + (b + 1) * part);
                return result;
            };
            const Run other =
                run_case(implementation, p,
                         {reversed(inputs.q), reversed(inputs.k), reversed(inputs.v)}, options);
            if (!same_bits(reversed(other.o), run.o) || !same_bits(reversed(other.lse), run.lse))
                failures.push_back(label + ": the order of the batches changes the result");
        }
    return failures;
}

}  // namespace fa::suite
