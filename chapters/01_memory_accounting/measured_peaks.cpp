#include "chapters/01_memory_accounting/measured_peaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "chapters/03_blocked_attention/blocked_attention.h"
#include "chapters/implementations.h"
#include "common/aligned_buffer.h"
#include "common/attention_data.h"
#include "common/cost_model.h"
#include "common/larger.h"
#include "common/memory_meter.h"
#include "common/text_table.h"

namespace fa {
namespace {

constexpr std::array IMPLEMENTATIONS{"cpu_naive", "cpu_blocked", "cpu_fast"};
constexpr std::size_t NAIVE = 0, BLOCKED = 1, FAST = 2;
constexpr TileSize TILE{};  // of cpu_blocked

// [measure]
/// The peak of the heap while an implementation runs, above what Q, K, V and O take.
std::size_t measured_peak(const Implementation& implementation, const AttentionProblem& problem,
                          const AttentionTensors& tensors, const Launch& launch) {
    const MemoryMeter meter;
    const AlignedBuffer workspace(implementation.workspace_bytes(problem, launch));
    attention(implementation, problem, tensors, workspace.bytes(), launch);
    return meter.peak();
}
// [measure]

float largest_difference(const Tensor<float>& a, const Tensor<float>& b) {
    float largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const float difference = std::abs(a.data()[i] - b.data()[i]);
        largest = larger_or_nan(largest, difference);
    }
    return largest;
}

/// What the blocked way holds, by name and in bytes.
std::vector<std::pair<const char*, double>> parts_of_blocked(const AttentionProblem& p,
                                                             int threads) {
    const double q = static_cast<double>(TILE.q), kv = static_cast<double>(TILE.kv);
    const double d = static_cast<double>(p.head_dim);
    const double float_bytes = sizeof(float) * static_cast<double>(threads);
    return {{"a tile of S, made P in its place", q * kv * float_bytes},
            {"tiles of Q and O", 2 * q * d * float_bytes},
            {"tiles of K and V", 2 * kv * d * float_bytes},
            {"m and l", 2 * q * float_bytes}};
}

/// Where the peak of the blocked way comes from, and why it saves less than one tile for a matrix.
void show_parts(const AttentionProblem& p, int threads, std::size_t peak) {
    TextTable table({"at the peak of the blocked way", "bytes"});
    double rest = static_cast<double>(peak);
    for (const auto& [name, bytes] : parts_of_blocked(p, threads)) {
        table.add({name, human_bytes(bytes)});
        rest -= bytes;
    }
    table.add({"the OpenMP team, if it is made anew; rounding", human_bytes(rest)});
    table.rule();
    table.add({"measured", human_bytes(static_cast<double>(peak))});
    fmt::print("\n{}", table.str());
}

/// What was measured at one length.
struct Row {
    AttentionProblem problem;
    std::vector<std::size_t> peaks;  ///< of IMPLEMENTATIONS, in bytes
    float difference = 0;            ///< largest between the naive O and the others

    double peak(std::size_t i) const { return static_cast<double>(peaks[i]); }
    double formula() const { return 2 * score_bytes(problem, DType::f32); }
    double saved() const { return peak(NAIVE) / peak(BLOCKED); }
    double saved_on_paper() const {
        return static_cast<double>(problem.len_q) * static_cast<double>(problem.len_kv) /
               static_cast<double>(TILE.q * TILE.kv);
    }
};

Row measure_row(Program& program, const AttentionProblem& problem, const Launch& launch) {
    Row row{.problem = problem, .peaks = {}};
    AttentionData<float> data(problem, program.seed);
    Tensor<float> naive_o;
    // The OpenMP runtime sets its threads up once; that is nobody's scratch.
    measured_peak(implementation_named(IMPLEMENTATIONS[NAIVE]), problem, data.tensors(), launch);
    for (const char* name : IMPLEMENTATIONS) {
        const Implementation& implementation = implementation_named(name);
        std::ranges::fill(data.o, std::nanf(""));  // what is not written must show
        row.peaks.push_back(measured_peak(implementation, problem, data.tensors(), launch));
        if (naive_o.size() == 0) naive_o = data.o;
        const float difference = largest_difference(naive_o, data.o);
        if (!(difference <= row.difference)) row.difference = difference;

        auto json = Results::row(implementation, problem);
        json["status"] = "ok";
        json["workspace_bytes"] = implementation.workspace_bytes(problem, launch);
        json["scratch_bytes"] = row.peaks.back();
        program.results.rows.push_back(json);
    }
    return row;
}

void add_checks(Checks& checks, const std::vector<Row>& rows, int threads) {
    const Row &first = rows.front(), &last = rows.back();
    // What matrix products pack, and tiles, grow with d and with the threads, not with T.
    constexpr double MIB = 1024.0 * 1024;
    const double allowance =
        MIB * threads * std::max(1.0, static_cast<double>(last.problem.head_dim) / 64);

    double most = 0;
    bool naive_fits = true;
    for (const Row& row : rows) {
        const double above = row.peak(NAIVE) - row.formula();
        naive_fits = naive_fits && above >= 0 && above <= allowance;
        most = std::max(most, above);
    }
    const std::string at = fmt::format("T={}: ", last.problem.len_q);
    checks.that("naive holds S and P, and little more",
                fmt::format("0 ... {} more", human_bytes(allowance)), human_bytes(most) + " more",
                naive_fits);
    checks.that(at + "blocked holds", "< " + human_bytes(allowance),
                human_bytes(last.peak(BLOCKED)), last.peak(BLOCKED) < allowance);
    checks.at_most("blocked holds no more at the longest T than at the shortest, ratio",
                   std::round(100 * last.peak(BLOCKED) / first.peak(BLOCKED)) / 100, 1.05);
    // On paper a tile of S is all that is held. Where what products pack outweighs a short S, or
    // the other tiles are narrow, that is no bound, and nothing is claimed.
    double tiles = 0;
    for (const auto& [name, bytes] : parts_of_blocked(last.problem, threads)) tiles += bytes;
    if ((last.formula() + allowance) / tiles <= last.saved_on_paper())
        checks.that(at + "saved, less than on paper",
                    fmt::format("<= {:.0f}", last.saved_on_paper()),
                    fmt::format("{:.0f}", last.saved()), last.saved() <= last.saved_on_paper());
    checks.at_most(at + "largest difference of O from the naive one", double{last.difference},
                   1e-5);
}

}  // namespace

void show_measured_peaks(Program& program, std::vector<std::int64_t> lengths, std::int64_t head_dim,
                         bool causal, int threads) {
    if (!MemoryMeter::active())
        throw std::runtime_error("the memory meter sees no allocations in this build");
    std::ranges::sort(lengths);
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
    const Launch launch{.threads = threads};

    print_heading("What is held, measured");
    fmt::print(
        "One fp32 head, d{}, {}, {} thread{}: the peak of the heap beside Q, K, V and O.\n"
        "On paper, one tile of {} x {} instead of a matrix saves T^2 / ({} * {}).\n\n",
        head_dim, causal ? "causal" : "full", threads, threads == 1 ? "" : "s", TILE.q, TILE.kv,
        TILE.q, TILE.kv);
    TextTable table({"T", "S+P by formula", "naive, measured", "blocked, measured",
                     "fast, measured", "saved on paper", "naive/blocked"});
    std::vector<Row> rows;
    for (const std::int64_t length : lengths) {
        const AttentionProblem problem{
            .len_q = length, .len_kv = length, .head_dim = head_dim, .causal = causal};
        rows.push_back(measure_row(program, problem, launch));

        const Row& row = rows.back();
        table.add({fmt::format("{}", length), human_bytes(row.formula()),
                   human_bytes(row.peak(NAIVE)), human_bytes(row.peak(BLOCKED)),
                   human_bytes(row.peak(FAST)), fmt::format("{:.0f}", row.saved_on_paper()),
                   fmt::format("{:.0f}", row.saved())});
    }
    fmt::print("{}", table.str());
    show_parts(rows.back().problem, threads, rows.back().peaks[BLOCKED]);
    add_checks(program.checks, rows, threads);
}

}  // namespace fa
