#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "chapters/03_blocked_attention/fast_attention.h"
#include "chapters/05_exp2/experiments.h"
#include "chapters/05_exp2/fast_exp2_attention.h"
#include "chapters/05_exp2/unit_model.h"
#include "common/aligned_buffer.h"
#include "common/attention_data.h"
#include "common/text_table.h"
#ifdef FA_CUDA_ENABLED
#include "chapters/04_cuda_tiled/tiled_attention.h"
#include "chapters/05_exp2/exp2_attention.h"
#include "common/cuda/device.h"
#include "common/cuda/timing.h"
#endif

namespace fa {
namespace {

/// Seconds of every run of one of the two.
class Times {
  public:
    void add(double seconds) { seconds_.push_back(seconds); }
    double fastest() const { return *std::ranges::min_element(seconds_); }
    double median() const {
        std::vector<double> sorted = seconds_;
        std::ranges::sort(sorted);
        const std::size_t n = sorted.size();
        return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    }
    int runs() const { return static_cast<int>(seconds_.size()); }

  private:
    std::vector<double> seconds_;
};

/// Two implementations of the same, and how long they took, run in turn: what disturbs the machine
/// disturbs both.
struct Comparison {
    std::array<const Implementation*, 2> implementations;  ///< with exp, with exp2
    std::array<Times, 2> times;
};

void add_rows(Program& program, TextTable& table, const Comparison& comparison,
              const AttentionProblem& problem) {
    for (std::size_t i = 0; i < 2; ++i) {
        const Times& times = comparison.times[i];
        const Implementation& implementation = *comparison.implementations[i];
        table.add({std::string(implementation.name), describe(problem),
                   human_seconds(times.fastest()), human_seconds(times.median()),
                   fmt::format("{}/s", human_count(problem.flops() / times.fastest(), "FLOP")),
                   i == 0 ? ""
                          : fmt::format("{:.3f}", comparison.times[1].fastest() /
                                                      comparison.times[0].fastest())});
        auto row = Results::row(implementation, problem);
        row["status"] = "ok";
        row["median_ms"] = 1e3 * times.median();
        row["min_ms"] = 1e3 * times.fastest();
        row["runs"] = times.runs();
        row["tflops"] = 1e-12 * problem.flops() / times.median();
        program.results.rows.push_back(row);
    }
}

TextTable times_table() {
    TextTable table({"implementation", "problem", "fastest", "median", "rate", "exp2 / exp"});
    table.left(1);
    return table;
}

}  // namespace

void show_cpu_times(Program& program, const TimingOptions& options) {
    print_heading("Measured on the CPU: one head, one thread, in turn");
    const AttentionProblem problem{.len_q = options.length,
                                   .len_kv = options.length,
                                   .head_dim = options.head_dim,
                                   .dtype = DType::f32};
    AttentionData<float> data(problem, program.seed);
    const Launch launch{.threads = 1};
    const AlignedBuffer workspace(CPU_FAST.workspace_bytes(problem, launch));
    Comparison comparison{{&CPU_FAST, &CPU_FAST_EXP2}, {}};
    for (int run = -1; run < options.runs; ++run)  // the first is to warm up
        for (std::size_t i = 0; i < 2; ++i) {
            const auto start = std::chrono::steady_clock::now();
            attention(*comparison.implementations[i], problem, data.tensors(), workspace.bytes(),
                      launch);
            const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
            if (run >= 0) comparison.times[i].add(took.count());
        }
    TextTable table = times_table();
    add_rows(program, table, comparison, problem);
    fmt::print("{}", table.str());
    program.checks.at_most("CPU: exp2 is no slower, fastest over fastest",
                           comparison.times[1].fastest() / comparison.times[0].fastest(), 1.1);
}

void show_gpu_times(Program& program, const TimingOptions& options) {
    print_heading("Measured on the GPU, in turn");
#ifdef FA_CUDA_ENABLED
    if (program.device == DeviceChoice::cpu) {
        fmt::print("Not run: --device cpu\n");
        return;
    }
    if (!why_no_gpu().empty()) {
        fmt::print("Not run: {}\n", why_no_gpu());
        return;
    }
    TextTable table = times_table();
    for (const bool causal : {true, false}) {
        const AttentionProblem problem{.batch = 4,
                                       .heads_q = 12,
                                       .heads_kv = 12,
                                       .len_q = options.gpu_length,
                                       .len_kv = options.gpu_length,
                                       .head_dim = options.head_dim,
                                       .dtype = DType::bf16,
                                       .causal = causal};
        Comparison comparison{{&CUDA_REGISTER_TILED, &CUDA_EXP2}, {}};
        TimedAttention exp(*comparison.implementations[0], problem, CacheState::warm, program.seed);
        TimedAttention exp2(*comparison.implementations[1], problem, CacheState::warm,
                            program.seed);
        const int runs = std::max(10, options.runs / 10);
        for (int run = -1; run < runs; ++run) {
            const double a = exp.replay() / static_cast<double>(exp.launches());
            const double b = exp2.replay() / static_cast<double>(exp2.launches());
            if (run < 0) continue;
            comparison.times[0].add(a);
            comparison.times[1].add(b);
        }
        add_rows(program, table, comparison, problem);
        program.checks.at_most(fmt::format("GPU, {}: exp2 is no slower, median over median",
                                           causal ? "causal" : "full"),
                               comparison.times[1].median() / comparison.times[0].median(), 1.02);
    }
    fmt::print("{}", table.str());
    const auto list =
        units(tile_shape(options.head_dim), count_shared_wavefronts(options.head_dim));
    const Unit& slowest = busiest(list);
    fmt::print(
        "\nPredicted for exp2 / exp, if the kernels wait for the busiest unit ({}): {:.3f}\n",
        slowest.name, slowest.clocks_exp2 / slowest.clocks_exp);
#else
    static_cast<void>(options);
    fmt::print("Not run: {}\n", program.device == DeviceChoice::cpu
                                    ? "--device cpu"
                                    : "this program was built without CUDA");
#endif
}

}  // namespace fa
