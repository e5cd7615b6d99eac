#include "chapters/01_memory_accounting/measured_peaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "chapters/03_blocked_attention/blocked_attention.h"
#include "chapters/implementations.h"
#include "common/aligned_buffer.h"
#include "common/cost_model.h"
#include "common/memory_meter.h"
#include "common/random.h"
#include "common/text_table.h"

namespace fa {
namespace {

/// Random inputs of one problem.
struct Inputs {
    Tensor<float> q, k, v;

    Inputs(const AttentionProblem& problem, std::uint64_t seed)
        : q(problem.q_shape()), k(problem.kv_shape()), v(problem.kv_shape()) {
        Random random(seed);
        for (Tensor<float>* tensor : {&q, &k, &v}) random.fill_normal(*tensor);
    }
};

struct Measurement {
    std::size_t peak;
    Tensor<float> o;
};

// [measure]
/// The peak of the heap while an implementation runs, above what Q, K, V and O take.
Measurement measure(const Implementation& implementation, const AttentionProblem& problem,
                    const Inputs& in, const Launch& launch) {
    Measurement result{0, Tensor<float>(problem.q_shape())};
    const AttentionTensors tensors{std::as_const(in.q).view(),
                                   std::as_const(in.k).view(),
                                   std::as_const(in.v).view(),
                                   result.o.view(),
                                   {}};
    const MemoryMeter meter;
    const AlignedBuffer workspace(implementation.workspace_bytes(problem, launch));
    attention(implementation, problem, tensors, workspace.bytes(), launch);
    result.peak = meter.peak();
    return result;
}
// [measure]

float largest_difference(const Tensor<float>& a, const Tensor<float>& b) {
    float largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const float difference = std::abs(a.data()[i] - b.data()[i]);
        if (!(difference <= largest)) largest = difference;  // NaN too
    }
    return largest;
}

/// Where the peak of the blocked way comes from, and why it saves less than one tile for a matrix.
void show_parts(const AttentionProblem& p, TileSize tile, int threads, std::size_t peak) {
    const double q = static_cast<double>(tile.q), kv = static_cast<double>(tile.kv);
    const double d = static_cast<double>(p.head_dim);
    const double float_bytes = sizeof(float) * static_cast<double>(threads);
    const std::vector<std::pair<const char*, double>> parts{
        {"a tile of S, made P in its place", q * kv * float_bytes},
        {"tiles of Q and O", 2 * q * d * float_bytes},
        {"tiles of K and V", 2 * kv * d * float_bytes},
        {"m and l", 2 * q * float_bytes}};
    TextTable table({"at the peak of the blocked way", "bytes"});
    double rest = static_cast<double>(peak);
    for (const auto& [name, bytes] : parts) {
        table.add({name, human_bytes(bytes)});
        rest -= bytes;
    }
    table.add({"packed tiles of the matrix products, padding", human_bytes(rest)});
    table.rule();
    table.add({"measured", human_bytes(static_cast<double>(peak))});
    fmt::print("\n{}", table.str());
}

/// The power of T with which a peak grows from one length to another.
double growth(std::size_t peak, std::size_t longer_peak, std::int64_t length, std::int64_t longer) {
    return std::log(static_cast<double>(longer_peak) / static_cast<double>(peak)) /
           std::log(static_cast<double>(longer) / static_cast<double>(length));
}

}  // namespace

void show_measured_peaks(Program& program, std::vector<std::int64_t> lengths, std::int64_t head_dim,
                         bool causal, int threads) {
    if (!MemoryMeter::active())
        throw std::runtime_error("the memory meter sees no allocations in this build");
    std::ranges::sort(lengths);
    const std::vector<const Implementation*> implementations{&implementation_named("cpu_naive"),
                                                             &implementation_named("cpu_blocked"),
                                                             &implementation_named("cpu_fast")};
    const Launch launch{.threads = threads};
    const TileSize tile;  // of cpu_blocked
    const double tile_elements = static_cast<double>(tile.q * tile.kv);

    print_heading("What is held, measured");
    fmt::print(
        "One fp32 head, d{}, {}, {} thread{}: the peak of the heap beside Q, K, V and O. On paper, "
        "one\n"
        "tile of {} x {} in the place of the matrix saves T^2 / ({} * {}).\n\n",
        head_dim, causal ? "causal" : "full", threads, threads == 1 ? "" : "s", tile.q, tile.kv,
        tile.q, tile.kv);
    TextTable table({"T", "S+P by formula", "naive, measured", "blocked, measured",
                     "fast, measured", "saved on paper", "naive/blocked"});
    struct Row {
        AttentionProblem problem;
        double formula, saved_on_paper;
        std::vector<std::size_t> peaks;
        float difference;  // between naive and blocked O
    };
    std::vector<Row> rows;
    for (const std::int64_t length : lengths) {
        Row row{
            .problem = {.len_q = length, .len_kv = length, .head_dim = head_dim, .causal = causal},
            .formula = 0,
            .saved_on_paper = 0,
            .peaks = {},
            .difference = 0};
        const Inputs in(row.problem, program.seed);
        // The OpenMP runtime sets its threads up once; that is nobody's scratch.
        if (rows.empty()) measure(*implementations[0], row.problem, in, launch);

        row.formula = 2 * score_bytes(row.problem, DType::f32);
        row.saved_on_paper =
            static_cast<double>(length) * static_cast<double>(length) / tile_elements;
        std::vector<Tensor<float>> outputs;
        for (const Implementation* implementation : implementations) {
            Measurement measured = measure(*implementation, row.problem, in, launch);
            row.peaks.push_back(measured.peak);
            outputs.push_back(std::move(measured.o));
            auto json = Results::row(*implementation, row.problem);
            json["status"] = "ok";
            json["scratch_bytes"] = measured.peak;
            json["workspace_bytes"] = implementation->workspace_bytes(row.problem, launch);
            program.results.rows.push_back(json);
        }
        row.difference = std::max(largest_difference(outputs[0], outputs[1]),
                                  largest_difference(outputs[0], outputs[2]));
        std::vector<std::string> cells{fmt::format("{}", length), human_bytes(row.formula)};
        for (const std::size_t peak : row.peaks)
            cells.push_back(human_bytes(static_cast<double>(peak)));
        cells.push_back(fmt::format("{:.0f}", row.saved_on_paper));
        cells.push_back(fmt::format(
            "{:.0f}", static_cast<double>(row.peaks[0]) / static_cast<double>(row.peaks[1])));
        table.add(cells);
        rows.push_back(std::move(row));
    }
    fmt::print("{}", table.str());
    const Row& last = rows.back();
    show_parts(last.problem, tile, threads, last.peaks[1]);

    constexpr double MIB = 1024.0 * 1024;
    const std::string at = fmt::format("T={}: ", lengths.back());
    const double naive_peak = static_cast<double>(last.peaks[0]);
    const double blocked_peak = static_cast<double>(last.peaks[1]);
    program.checks.that(at + "naive holds S and P, and under 1 MiB more a thread",
                        human_bytes(last.formula), human_bytes(naive_peak),
                        naive_peak >= last.formula && naive_peak <= last.formula + MIB * threads);
    program.checks.that(at + "blocked holds under 1 MiB a thread",
                        "< " + human_bytes(MIB * threads), human_bytes(blocked_peak),
                        blocked_peak < MIB * threads);
    program.checks.at_most(at + "saved, at most what it is on paper", naive_peak / blocked_peak,
                           last.saved_on_paper);
    program.checks.at_most(at + "outputs differ from naive by", double{last.difference}, 1e-5);
    if (rows.size() > 1) {
        const Row& first = rows.front();
        program.checks.at_least(
            "naive grows with this power of T",
            growth(first.peaks[0], last.peaks[0], lengths.front(), lengths.back()), 1.9);
        program.checks.at_most(
            "blocked grows with this power of T",
            growth(first.peaks[1], last.peaks[1], lengths.front(), lengths.back()), 0.1);
    }
}

}  // namespace fa
