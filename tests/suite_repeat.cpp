#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "tests/suite_case.h"
#include "tests/suite_checks.h"

namespace fa::suite {
namespace {

void expect_same(Failures& failures, const std::string& label, const Run& first, const Run& other) {
    for (const std::string& fault : other.faults) failures.push_back(label + ": " + fault);
    if (!same_bits(first.o, other.o))
        failures.push_back(label + ": O differs from the first run's");
    if (!same_bits(first.lse, other.lse))
        failures.push_back(label + ": LSE differs from the first run's");
}

}  // namespace

Failures check_repeatable(const Implementation& implementation) {
    Failures failures;
    for (DType dtype : dtypes_of_long_check(implementation)) {
        const SuiteCase c{.problem = {.heads_q = 8,
                                      .heads_kv = 8,
                                      .len_q = 512,
                                      .len_kv = 512,
                                      .head_dim = 64,
                                      .dtype = dtype,
                                      .causal = true}};
        const RunOptions options{.layout = Layout::dense};
        const Run first = run_case(implementation, c.problem, prepared(c).inputs, options);
#ifdef FA_SANITIZED
        constexpr int RUNS = 5;  // sanitizers see more and run slower
#else
        constexpr int RUNS = 30;
#endif
        const int runs = implementation.device == Device::executor    ? 3
                         : dtype == dtypes_of(implementation).front() ? RUNS
                                                                      : RUNS / 3;
        for (int n = 2; n <= runs && failures.empty(); ++n)
            expect_same(failures,
                        fmt::format("{}: {}, run {}", implementation.name, describe(c), n), first,
                        run_case(implementation, c.problem, prepared(c).inputs, options));
    }
    return failures;
}

Failures check_threads(const Implementation& implementation) {
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    Failures failures;
    for (DType dtype : dtypes_of_long_check(implementation))
        for (bool causal : {false, true})
            for (std::int64_t length : {129, 700}) {
                if (length > longest_length(implementation)) continue;
                const SuiteCase c{.problem = {.heads_q = 3,
                                              .heads_kv = 1,
                                              .len_q = length,
                                              .len_kv = length,
                                              .head_dim = 64,
                                              .dtype = dtype,
                                              .causal = causal}};
                if (!supports(implementation, c.problem)) continue;
                const Inputs& inputs = prepared(c).inputs;
                const Run first = run_case(implementation, c.problem, inputs, {.threads = 1});
                for (int threads : {2, 3, 4, 2 * cores, 0}) {
                    const RunOptions options{.threads = threads};
                    expect_same(failures, label_of(implementation, describe(c), options), first,
                                run_case(implementation, c.problem, inputs, options));
                }
            }
    return failures;
}

}  // namespace fa::suite
