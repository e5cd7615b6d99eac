#include <fmt/format.h>

#include <cmath>

#include "tests/suite_case.h"
#include "tests/suite_checks.h"

namespace fa::suite {

Failures check_extreme_scores(const Implementation& implementation) {
    Failures failures;
    for (DType dtype : dtypes_of_long_check(implementation))
        for (Pattern pattern :
             {Pattern::rising, Pattern::falling, Pattern::huge_rising, Pattern::huge_falling,
              Pattern::spikes, Pattern::very_negative, Pattern::equal}) {
            const bool huge = pattern == Pattern::huge_rising || pattern == Pattern::huge_falling;
            if (huge && dtype == DType::f16) continue;  // its numbers end at 65,504
            for (bool causal : {false, true})
                for (std::int64_t length : {17, 130, 520}) {
                    const SuiteCase c{.problem = {.len_q = length,
                                                  .len_kv = length,
                                                  .head_dim = 64,
                                                  .dtype = dtype,
                                                  .causal = causal},
                                      .pattern = pattern};
                    const Run run = run_case(implementation, c.problem, prepared(c).inputs);
                    const std::string label = label_of(implementation, describe(c), {});
                    check_prepared(failures, implementation, label, c.problem, prepared(c), run);
                    for (float value : run.o)
                        if (!std::isfinite(value)) {
                            failures.push_back(fmt::format("{}: O holds {}", label, value));
                            break;
                        }
                }
        }
    return failures;
}

}  // namespace fa::suite
