#include "chapters/06_benchmark/accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chapters/01_memory_accounting/naive_attention.h"
#include "chapters/06_benchmark/errors.h"
#include "common/attention_data.h"
#include "common/larger.h"
#include "common/progress.h"
#include "common/reference_attention.h"
#include "common/run_from_host.h"
#include "common/text_table.h"

namespace fa {
namespace {

template <class T>
Errors errors_on(const Implementation& implementation, const AttentionProblem& problem,
                 AttentionData<T>& data, const std::vector<double>& gold) {
    std::ranges::fill(data.o, T(std::nanf("")));  // what is not written must show
    run_from_host(implementation, problem, data.tensors());
    std::vector<float> o(data.o.size());
    std::ranges::transform(data.o, o.begin(), [](T x) { return static_cast<float>(x); });
    return errors_of(o, gold, problem.head_dim);
}

/// What one implementation came to at one length.
struct Cell {
    std::optional<Errors> errors;
    std::string reason;  ///< why there are none; else empty
};

/// All implementations at one length.
struct Column {
    AttentionProblem problem;
    double bound = 0;  ///< on Errors::relative
    std::vector<Cell> cells;
};

Column measure_column(const AttentionProblem& problem,
                      const std::vector<const Implementation*>& implementations, std::uint64_t seed,
                      Progress& progress) {
    return with_element_type(problem.dtype, [&](auto element) {
        AttentionData<decltype(element)> data(problem, seed);
        const std::vector<double> gold = reference_attention(problem, data.tensors()).o;
        progress.advance();
        Column column{.problem = problem, .cells = {}};
        column.bound = relative_bound(problem, errors_on(CPU_NAIVE, problem, data, gold).relative);
        for (const Implementation* implementation : implementations) {
            Cell& cell = column.cells.emplace_back();
            try {
                cell.errors = errors_on(*implementation, problem, data, gold);
            } catch (const Unsupported& refusal) {  // of the problem, or of its tensors
                cell.reason = refusal.what();
            }
            progress.advance();
        }
        return column;
    });
}

}  // namespace

void show_accuracy(Program& program, const AttentionProblem& base,
                   const std::vector<std::int64_t>& lengths,
                   const std::vector<const Implementation*>& implementations) {
    std::vector<Column> columns;
    {
        Progress progress("accuracy",
                          static_cast<std::int64_t>(lengths.size() * (implementations.size() + 1)));
        for (const std::int64_t length : lengths) {
            AttentionProblem problem = base;
            problem.len_q = problem.len_kv = length;
            columns.push_back(measure_column(problem, implementations, program.seed, progress));
        }
    }

    print_heading(fmt::format("Error of O against fp64, measured: B{} H{} d{} {} {}", base.batch,
                              base.heads_q, base.head_dim, name_of(base.dtype),
                              base.causal ? "causal" : "full"));
    fmt::print("Largest error, and in brackets the root mean square.\n\n");
    std::vector<std::string> headers{"implementation"};
    for (const std::int64_t length : lengths) headers.push_back(fmt::format("T={}", length));
    headers.push_back("of the bound");
    TextTable table(headers);
    for (std::size_t i = 0; i < implementations.size(); ++i) {
        const Implementation& implementation = *implementations[i];
        std::vector<std::string> cells{std::string(implementation.name)};
        double worst = 0;
        bool measured = false;
        for (const Column& column : columns) {
            auto row = Results::row(implementation, column.problem);
            row["quantity"] = "error";
            if (const auto& errors = column.cells[i].errors) {
                cells.push_back(fmt::format("{:.1e} ({:.1e})", errors->largest, errors->rms));
                const double share = errors->relative / column.bound;
                worst = larger_or_nan(worst, share);
                measured = true;
                row["status"] = "ok";
                row["max_error"] = errors->largest;
                row["rms_error"] = errors->rms;
                row["error_share"] = share;
            } else {
                cells.push_back("unsupported");
                row["status"] = "unsupported";
                row["reason"] = column.cells[i].reason;
            }
            program.results.rows.push_back(row);
        }
        const bool judged = !implementation.rounds_scores;
        cells.push_back(measured ? fmt::format("{:.2f}{}", worst, judged ? "" : " *") : "-");
        table.add(std::move(cells));
        if (judged && measured)
            program.checks.at_most(
                fmt::format("{}: error over twice the naive one", implementation.name), worst, 1);
    }
    fmt::print("{}", table.str());
    if (std::ranges::any_of(implementations, [](const auto* i) { return i->rounds_scores; }))
        fmt::print("* rounds its scores to 16 bits on purpose; the bound is not for it\n");
}

}  // namespace fa
