#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "tests/suite_case.h"
#include "tests/suite_checks.h"

namespace fa::suite {

Failures check_grouped_heads(const Implementation& implementation) {
    constexpr std::array<std::pair<std::int64_t, std::int64_t>, 7> HEADS{
        {{6, 2}, {12, 12}, {12, 1}, {8, 2}, {48, 2}, {6, 3}, {4, 2}}};
    Failures failures;
    for (DType dtype : dtypes_of(implementation))
        for (const auto& [heads_q, heads_kv] : HEADS) {
            const SuiteCase c{.problem = {.batch = 2,
                                          .heads_q = heads_q,
                                          .heads_kv = heads_kv,
                                          .len_q = 20,
                                          .len_kv = 35,
                                          .head_dim = 64,
                                          .dtype = dtype,
                                          .causal = true}};
            if (!supports(implementation, c.problem)) continue;
            check_case(failures, implementation, c);

            // V is the number of its batch and head, and so must O be.
            const AttentionProblem& p = c.problem;
            Inputs inputs = prepared(c).inputs;
            const std::int64_t per_head = p.len_kv * p.head_dim;
            for (std::int64_t n = 0; n < p.kv_shape().count(); ++n)
                inputs.v[idx(n)] = static_cast<float>(n / per_head);
            const Run run = run_case(implementation, p, inputs);
            for (std::int64_t n = 0; n < p.q_shape().count(); ++n) {
                const std::int64_t head = n / (p.len_q * p.head_dim);  // batch and head in one
                const std::int64_t b = head / heads_q, h = head % heads_q;
                const auto expected = static_cast<float>(b * heads_kv + h / (heads_q / heads_kv));
                if (std::abs(run.o[idx(n)] - expected) <= 0.25f) continue;
                failures.push_back(fmt::format(
                    "{}: {}: query head {} of batch {} gives {} where key/value head {} holds {}",
                    implementation.name, describe(c), h, b, run.o[idx(n)], h / (heads_q / heads_kv),
                    expected));
                break;
            }
        }
    return failures;
}

Failures check_many_heads(const Implementation& implementation) {
    // Grids of CUDA blocks end at 65,535 in two of their three directions. The executor, to which
    // each head is a whole tile, has neither the limit nor the time.
    const bool on_executor = implementation.device == Device::executor;
    const std::int64_t many = on_executor ? 257 : 65'537;
    Failures failures;
    const DType dtype = dtypes_of(implementation).front();
    for (const auto& [batch, heads_q, heads_kv] :
         {std::array<std::int64_t, 3>{1, many, many},
          {many, 1, 1},
          {257, on_executor ? 2 : 256, on_executor ? 1 : 128}})
        for (std::int64_t head_dim : {8, 64})  // the first that is taken
        {
            const SuiteCase c{.problem = {.batch = batch,
                                          .heads_q = heads_q,
                                          .heads_kv = heads_kv,
                                          .len_q = 2,
                                          .len_kv = 3,
                                          .head_dim = head_dim,
                                          .dtype = dtype,
                                          .causal = true}};
            if (!supports(implementation, c.problem)) continue;
            check_case(failures, implementation, c, {.layout = Layout::dense});
            break;
        }
    return failures;
}

}  // namespace fa::suite
