#include "chapters/04_cuda_tiled/error_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "chapters/01_memory_accounting/naive_attention.h"
#include "common/attention_data.h"
#include "common/larger.h"
#include "common/reference_attention.h"
#include "common/run_from_host.h"
#include "common/text_table.h"

namespace fa {
namespace {

/// Largest differences from fp64, in O and in LSE; NaN if one is.
struct LargestErrors {
    double o = 0, lse = 0;
};

template <class T>
LargestErrors largest_errors(const Implementation& implementation, const AttentionProblem& p,
                             AttentionData<T>& data, const ReferenceResult& gold) {
    std::fill(data.o.begin(), data.o.end(), T(std::nanf("")));
    std::fill(data.lse.begin(), data.lse.end(), std::nanf(""));
    run_from_host(implementation, p, data.tensors());
    LargestErrors result;
    for (std::size_t i = 0; i < gold.o.size(); ++i)
        result.o = larger_or_nan(
            result.o,
            std::fabs(static_cast<double>(static_cast<float>(data.o.data()[i])) - gold.o[i]));
    for (std::size_t i = 0; i < gold.lse.size(); ++i)
        if (static_cast<double>(data.lse[i]) != gold.lse[i])  // −∞ where no key is seen
            result.lse = larger_or_nan(result.lse,
                                       std::fabs(static_cast<double>(data.lse[i]) - gold.lse[i]));
    return result;
}

}  // namespace

void show_error_table(Program& program, std::span<const Implementation* const> implementations,
                      std::span<const AttentionProblem> problems) {
    print_heading("Errors against fp64");
    TextTable table({"problem", "implementation", "largest error of O", "bound", "of LSE"});
    table.left(1);
    for (const AttentionProblem& p : problems)
        with_element_type(p.dtype, [&](auto element) {
            AttentionData<decltype(element)> data(p, program.seed);
            const ReferenceResult gold = reference_attention(p, data.tensors());
            double largest = 0;
            for (double o : gold.o) largest = std::max(largest, std::fabs(o));
            const double bound = 2 * largest_errors(CPU_NAIVE, p, data, gold).o +
                                 2 * roundoff(p.dtype) * std::max(largest, 1.0);
            for (const Implementation* implementation : implementations) {
                const LargestErrors e = largest_errors(*implementation, p, data, gold);
                table.add({describe(p), std::string(implementation->name),
                           fmt::format("{:.2e}", e.o), fmt::format("{:.2e}", bound),
                           fmt::format("{:.2e}", e.lse)});
                program.checks.at_most(
                    fmt::format("{}, d{}: error of O", implementation->name, p.head_dim), e.o,
                    bound);
                program.checks.at_most(
                    fmt::format("{}, d{}: error of LSE", implementation->name, p.head_dim), e.lse,
                    1e-5);
                auto row = Results::row(*implementation, p);
                row["status"] = "ok";
                row["max_error"] = e.o;
                row["max_error_lse"] = e.lse;
                program.results.rows.push_back(row);
            }
        });
    fmt::print("{}", table.str());
}

}  // namespace fa
