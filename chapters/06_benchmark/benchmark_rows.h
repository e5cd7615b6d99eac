#pragma once
/// @file
/// The timed rows: registered with Google Benchmark, run by it, collected from it.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chapters/06_benchmark/benchmark_flags.h"
#include "chapters/06_benchmark/measured_ceilings.h"
#include "chapters/06_benchmark/shapes.h"
#include "chapters/06_benchmark/timed_case.h"
#include "common/results.h"

namespace fa {

/// What became of a row.
enum class RowStatus {
    not_run,        ///< left out by --benchmark_filter
    ok,             ///< timed
    out_of_memory,  ///< its memory was not to be had
    unsupported,    ///< the implementation does not take the problem
    failed          ///< anything else: a fault
};
/// "ok", "out_of_memory", …
std::string_view name_of(RowStatus status);

/// One implementation on one problem.
struct Row {
    const Implementation* implementation = nullptr;
    AttentionProblem problem;
    CacheState cache = CacheState::warm;
    std::string name;
    std::string set;  ///< name of the ShapeSet

    RowStatus status = RowStatus::not_run;
    std::string reason;           ///< why not ok
    std::vector<double> seconds;  ///< per call: the mean of each repetition
    std::int64_t calls = 0;       ///< one behind the other between two looks at the clock
    std::int64_t kernels = 0;     ///< launched by a call
    std::size_t scratch_bytes = 0;
    double clock_mhz = 0;
    std::optional<double> power_w;  ///< mean, if it was asked for and can be known
    SpotCheck check;

    /// The name that Google Benchmark gives it.
    std::string full_name() const { return name + "/manual_time"; }
    double median() const;
    double fastest() const;
    double flops_per_s() const { return problem.flops() / median(); }
    /// Bytes that a call holds at most: Q, K, V, O, LSE and scratch.
    double peak_bytes() const;
    /// In the JSON shape of docs/results. @param ceilings of the row's type and of fp32
    nlohmann::ordered_json json(const CeilingsByType& ceilings) const;
};

/// What goes into the rows beside the shapes.
struct RowOptions {
    std::vector<const Implementation*> implementations;
    std::vector<CacheState> caches;
    CaseOptions case_options;
};

/// All combinations, tables one behind the other, each once. Where the inputs are larger than the
/// cache there is no warm row: nothing could stay.
/// @param cache_bytes of the last-level cache; 0: unknown, and all are taken
std::vector<Row> make_rows(const std::vector<ShapeSet>& sets, const RowOptions& options,
                           double cache_bytes);

/// Runs rows under Google Benchmark.
class BenchmarkRun {
  public:
    /// @throws UsageError for a flag that Google Benchmark does not know
    BenchmarkRun(BenchmarkFlags flags, int repetitions);

    /// True if the flags ask for a list of names only.
    bool lists_only() const { return flags_.switched_on("--benchmark_list_tests"); }
    /// True if the flags leave out rows.
    bool filters() const { return flags_.has("--benchmark_filter"); }
    /// @throws UsageError if the flags leave out all rows
    void require_one_of(const std::vector<Row>& rows) const;

    /// Runs the rows and fills them in.
    /// @param ceilings of the rows' types
    void run(std::vector<Row>& rows, const CaseOptions& options, const CeilingsByType& ceilings);
    /// Prints the rows' names as Google Benchmark does, and runs nothing.
    void list(std::vector<Row>& rows) { run(rows, {}, {}); }

  private:
    BenchmarkFlags flags_;
};

}  // namespace fa
