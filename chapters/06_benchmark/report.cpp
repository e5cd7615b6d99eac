#include "chapters/06_benchmark/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "chapters/06_benchmark/prediction.h"
#include "common/larger.h"
#include "common/text_table.h"

namespace fa {
namespace {

/// What stands in a table for a row that has no time.
std::string word_for(const Row& row) {
    switch (row.status) {
        case RowStatus::out_of_memory: return "out of memory";
        case RowStatus::unsupported: return "unsupported";
        case RowStatus::failed: return "FAILED";
        default: return "-";
    }
}

/// Implementations downwards, lengths across. `cell` is asked for rows that were timed.
void print_matrix(const std::string& what, const std::vector<const Row*>& rows,
                  const std::function<std::string(const Row&)>& cell) {
    std::set<std::int64_t> lengths;
    std::vector<const Implementation*> implementations;
    for (const Row* row : rows) {
        lengths.insert(row->problem.len_q);
        if (std::ranges::find(implementations, row->implementation) == implementations.end())
            implementations.push_back(row->implementation);
    }
    std::vector<std::string> headers{what};
    for (const std::int64_t length : lengths) headers.push_back(fmt::format("T={}", length));
    TextTable table(headers);
    for (const Implementation* implementation : implementations) {
        std::vector<std::string> cells{std::string(implementation->name)};
        for (const std::int64_t length : lengths) {
            const auto found = std::ranges::find_if(rows, [&](const Row* row) {
                return row->implementation == implementation && row->problem.len_q == length;
            });
            cells.push_back(found == rows.end()                 ? "-"
                            : (*found)->status == RowStatus::ok ? cell(**found)
                                                                : word_for(**found));
        }
        table.add(std::move(cells));
    }
    fmt::print("\n{}", table.str());
}

void print_set(const ShapeSet& set, const std::vector<Row>& rows, const CeilingsByType& by_type) {
    const Ceilings& ceilings = ceilings_for(by_type, set.base.dtype);
    for (const CacheState cache : {CacheState::cold, CacheState::warm}) {
        std::vector<const Row*> shown;
        for (const Row& row : rows)
            if (row.set == set.name && row.cache == cache && row.status != RowStatus::not_run)
                shown.push_back(&row);
        if (shown.empty()) continue;
        // "measured" tells scripts/check_outputs.py that these figures differ from run to run.
        print_heading(fmt::format("{}, {} cache, measured", set.title(), name_of(cache)));
        fmt::print(
            "Medians of {} repetitions. The bound: the longest of memory, products and "
            "exponentials.\n",
            std::ranges::max(shown, {}, [](const Row* r) {
                return r->seconds.size();
            })->seconds.size());
        print_matrix("time", shown, [](const Row& r) { return human_seconds(r.median()); });
        print_matrix("predicted", shown, [&](const Row& r) {
            const auto predicted = predicted_seconds(*r.implementation, r.problem, by_type);
            return predicted ? human_seconds(*predicted) : "-";
        });
        print_matrix("rate", shown,
                     [](const Row& r) { return human_count(r.flops_per_s(), "FLOP/s"); });
        print_matrix("share of the bound", shown, [&](const Row& r) {
            return fmt::format("{:.1f} %", 100 * bound_seconds(ceilings, r.problem) / r.median());
        });
        print_matrix("scratch memory", shown, [](const Row& r) {
            return human_bytes(static_cast<double>(r.scratch_bytes));
        });
        if (std::ranges::any_of(shown, [](const Row* r) { return r->clock_mhz > 0; }))
            print_matrix("clock", shown,
                         [](const Row& r) { return fmt::format("{:.0f} MHz", r.clock_mhz); });
        if (std::ranges::any_of(shown, [](const Row* r) { return r->power_w.has_value(); }))
            print_matrix("power", shown, [](const Row& r) {
                return r.power_w ? fmt::format("{:.0f} W", *r.power_w) : "-";
            });
    }
}

void print_reasons(const std::vector<Row>& rows) {
    bool first = true;
    for (const Row& row : rows) {
        if (row.status == RowStatus::ok || row.status == RowStatus::not_run) continue;
        if (std::exchange(first, false)) print_heading("What did not run, measured");
        fmt::print("{}\n    {}\n", row.name, row.reason);
    }
}

void add_checks(Checks& checks, const std::vector<Row>& rows) {
    const auto count = [&](RowStatus status) {
        return static_cast<double>(std::ranges::count(rows, status, &Row::status));
    };
    checks.at_least("rows timed", count(RowStatus::ok), 1);
    checks.equal("rows that failed", count(RowStatus::failed), 0);

    std::optional<double> worst;  // of those that are judged
    std::size_t fewest = SIZE_MAX, most = 0;
    for (const Row& row : rows) {
        if (row.status != RowStatus::ok) continue;
        fewest = std::min(fewest, row.seconds.size());
        most = std::max(most, row.seconds.size());
        if (!row.implementation->rounds_scores)
            worst = larger_or_nan(worst.value_or(0), row.check.share);
    }
    if (worst)
        checks.at_most("what was timed is right: largest error over the 2x rule's bound", *worst,
                       1);
    if (most > 0)
        checks.equal("repetitions behind each median", static_cast<double>(fewest),
                     static_cast<double>(most));
}

}  // namespace

void report_rows(Program& program, const std::vector<ShapeSet>& sets, const std::vector<Row>& rows,
                 const CeilingsByType& ceilings) {
    for (const ShapeSet& set : sets) print_set(set, rows, ceilings);
    print_reasons(rows);
    for (const Row& row : rows)
        if (row.status != RowStatus::not_run) program.results.rows.push_back(row.json(ceilings));
    add_checks(program.checks, rows);
}

}  // namespace fa
