#include "chapters/06_benchmark/benchmark_rows.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <set>
#include <thread>

#include "chapters/06_benchmark/prediction.h"
#include "common/program.h"
#include "common/progress.h"

namespace fa {
namespace {

/// Keeps the row that was prepared last: Google Benchmark calls a row's function many times, to
/// find out how many iterations it takes, and once for each repetition.
class Cases {
  public:
    Cases(const CaseOptions& options, std::int64_t rows)
        : options_(options), progress_("measuring", rows) {}

    /// The prepared case of a row, or null if the row cannot run and says why.
    TimedCase* of(Row& row) {
        if (row_ == &row || (row.status != RowStatus::not_run && row.status != RowStatus::ok))
            return row_ == &row ? case_.get() : nullptr;
        finish();
        const auto give_up = [&](RowStatus status, const char* reason) {
            case_.reset();
            row.status = status;
            row.reason = reason;
            progress_.advance();
        };
        try {
            case_ = prepare(*row.implementation, row.problem, row.cache, options_);
            row.check = case_->check();
            row.calls = case_->calls();
            row.kernels = case_->kernels();
            row.scratch_bytes = case_->scratch_bytes();
            // Before the repetitions: unless they rest, their rate is the one at that power.
            if (options_.power_seconds > 0) row.power_w = case_->power_w(options_.power_seconds);
            row.status = RowStatus::ok;
            row_ = &row;
        } catch (const OutOfMemory& error) {
            give_up(RowStatus::out_of_memory, error.what());
        } catch (const std::bad_alloc&) {
            give_up(RowStatus::out_of_memory, "out of memory");
        } catch (const Unsupported& error) {
            give_up(RowStatus::unsupported, error.what());
        } catch (const std::exception& error) {
            give_up(RowStatus::failed, error.what());
        }
        return case_.get();
    }

    /// Lets the device cool before a repetition.
    void rest() const {
        std::this_thread::sleep_for(std::chrono::duration<double>(options_.rest_seconds));
    }

    /// Frees what is held; the next row needs the room.
    void finish() {
        if (row_) {
            row_->clock_mhz = case_->clock_mhz();
            progress_.advance();
        }
        case_.reset();
        row_ = nullptr;
    }

  private:
    CaseOptions options_;
    Progress progress_;
    Row* row_ = nullptr;
    std::unique_ptr<TimedCase> case_;
};

// [iteration]
/// What Google Benchmark runs for a row. A batch is one replay of a graph, or one call on a CPU; it
/// counts as many iterations as it holds calls, and the time is the one the device's events give.
void measure_row(benchmark::State& state, Row& row, Cases& cases, const CeilingsByType& ceilings) {
    TimedCase* timed = cases.of(row);
    if (timed == nullptr) {
        state.SkipWithError(fmt::format("{}: {}", name_of(row.status), row.reason).c_str());
        return;
    }
    cases.rest();
    while (state.KeepRunningBatch(timed->calls())) state.SetIterationTime(timed->run());

    using benchmark::Counter;
    const double bound = bound_seconds(ceilings_for(ceilings, row.problem.dtype), row.problem);
    state.counters["FLOP/s"] = Counter(row.problem.flops(), Counter::kIsIterationInvariantRate);
    state.counters["bound_share"] = Counter(bound, Counter::kIsIterationInvariantRate);
    state.counters["bytes"] = tensor_bytes(row.problem);
    state.counters["peak_bytes"] = row.peak_bytes();
}
// [iteration]

/// Collects the time of each repetition, and passes everything on to Google Benchmark's own table
/// if that was asked for.
class Collector final : public benchmark::BenchmarkReporter {
  public:
    Collector(std::map<std::string, Row*> rows, bool shows_table)
        : rows_(std::move(rows)), shows_table_(shows_table) {}

    bool ReportContext(const Context& context) override {
        return !shows_table_ || table_.ReportContext(context);
    }
    void ReportRuns(const std::vector<Run>& runs) override {
        for (const Run& run : runs) {
            const auto found = rows_.find(run.run_name.function_name);
            if (found == rows_.end() || found->second->status != RowStatus::ok) continue;
            if (run.run_type == Run::RT_Iteration && run.iterations > 0)
                found->second->seconds.push_back(run.real_accumulated_time /
                                                 static_cast<double>(run.iterations));
        }
        if (!shows_table_) return;
        std::vector<Run> shown;  // of ten repetitions and four aggregates, the one that is used
        std::ranges::copy_if(runs, std::back_inserter(shown), [](const Run& run) {
            return run.repetitions == 1 || run.aggregate_name == "median";
        });
        if (!shown.empty()) table_.ReportRuns(shown);
    }

  private:
    std::map<std::string, Row*> rows_;
    bool shows_table_;
    benchmark::ConsoleReporter table_{benchmark::ConsoleReporter::OO_Tabular};
};

}  // namespace

std::string_view name_of(RowStatus status) {
    switch (status) {
        case RowStatus::not_run: return "not_run";
        case RowStatus::ok: return "ok";
        case RowStatus::out_of_memory: return "out_of_memory";
        case RowStatus::unsupported: return "unsupported";
        case RowStatus::failed: return "failed";
    }
    return "?";
}

double Row::median() const {
    return median_of(seconds);
}

double Row::fastest() const {
    return *std::ranges::min_element(seconds);
}

double Row::peak_bytes() const {
    return tensor_bytes(problem) + static_cast<double>(scratch_bytes);
}

nlohmann::ordered_json Row::json(const CeilingsByType& by_type) const {
    const Ceilings& ceilings = ceilings_for(by_type, problem.dtype);
    std::optional<double> predicted;
    if (status != RowStatus::unsupported)  // for whatever reason, one of its tensors included
        predicted = predicted_seconds(*implementation, problem, by_type);
    nlohmann::ordered_json json = Results::row(*implementation, problem);
    json["name"] = full_name();
    json["set"] = set;
    json["cache"] = fa::name_of(cache);
    json["status"] = fa::name_of(status);
    json["reason"] = reason;
    json["bytes"] = tensor_bytes(problem);
    json["flops"] = problem.flops();
    const bool timed = status == RowStatus::ok && !seconds.empty();
    const auto put = [&](const char* key, auto value) { json[key] = number_or_null(timed, value); };
    put("median_ms", timed ? 1e3 * median() : 0);
    put("min_ms", timed ? 1e3 * fastest() : 0);
    put("runs", seconds.size());
    put("calls_per_run", calls);
    put("kernels", kernels);
    put("tflops", timed ? 1e-12 * flops_per_s() : 0);
    json["bound_ms"] = 1e3 * bound_seconds(ceilings, problem);
    json["bound"] = bound_of(ceilings, least_cost(problem));
    json["predicted_ms"] = number_or_null(predicted.has_value(), 1e3 * predicted.value_or(0));
    put("bound_share", timed ? bound_seconds(ceilings, problem) / median() : 0);
    put("scratch_bytes", scratch_bytes);
    put("peak_bytes", peak_bytes());
    put("max_error", check.largest);
    put("clock_mhz", clock_mhz);
    json["power_w"] = number_or_null(power_w);
    return json;
}

std::vector<Row> make_rows(const std::vector<ShapeSet>& sets, const RowOptions& options,
                           double cache_bytes) {
    std::vector<Row> rows;
    std::set<std::string> known;  // flags may make two sets alike
    for (const ShapeSet& set : sets)
        for (const CacheState cache : options.caches)
            for (const Implementation* implementation : options.implementations)
                for (const std::int64_t length : set.lengths) {
                    Row row;
                    row.implementation = implementation;
                    row.problem = set.problem(length);
                    row.cache = cache;
                    row.set = set.name;
                    row.name = row_name(*implementation, row.problem, cache);
                    const bool fits = cache_bytes == 0 || tensor_bytes(row.problem) <= cache_bytes;
                    if ((cache == CacheState::cold || fits) && known.insert(row.name).second)
                        rows.push_back(row);
                }
    return rows;
}

BenchmarkRun::BenchmarkRun(BenchmarkFlags flags, int repetitions) : flags_(std::move(flags)) {
    flags_.initialize(repetitions);
}

void BenchmarkRun::require_one_of(const std::vector<Row>& rows) const {
    if (std::ranges::none_of(rows, [&](const Row& row) { return flags_.takes(row.full_name()); }))
        throw UsageError(
            fmt::format("--benchmark_filter fits none of the {} rows; --benchmark_list_tests names "
                        "them",
                        rows.size()));
}

void BenchmarkRun::run(std::vector<Row>& rows, const CaseOptions& options,
                       const CeilingsByType& ceilings) {
    Cases cases(options, static_cast<std::int64_t>(rows.size()));
    std::map<std::string, Row*> by_name;
    for (Row& row : rows) {
        by_name[row.name] = &row;
        benchmark::RegisterBenchmark(row.name.c_str(),
                                     [&row, &cases, &ceilings](benchmark::State& state) {
                                         measure_row(state, row, cases, ceilings);
                                     })
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond);
    }
    Collector collector(std::move(by_name), flags_.has("--benchmark_format"));
    benchmark::RunSpecifiedBenchmarks(&collector);
    cases.finish();
    benchmark::ClearRegisteredBenchmarks();
}

}  // namespace fa
