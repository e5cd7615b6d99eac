#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chapters/09_hopper/experiments.h"
#include "chapters/09_hopper/variant_errors.h"
#include "common/larger.h"
#include "common/text_table.h"
#ifdef FA_HOPPER_ENABLED
#include "chapters/09_hopper/ablations.h"
#include "common/cuda/clock.h"
#include "common/cuda/power.h"
#include "common/cuda/timing.h"
#endif

namespace fa {
namespace {

/// The name of a variant among checks.
std::string name_of(std::string_view variant, const AttentionProblem& p) {
    return p.head_dim == 64 ? std::string(variant) : fmt::format("{}, d{}", variant, p.head_dim);
}

#ifdef FA_HOPPER_ENABLED
/// Median seconds of a launch, clock and power, and what was computed.
struct Timed {
    double seconds, clock_mhz;
    std::optional<double> power;
    std::vector<float> lse;
};

/// @param power_seconds of more replays, for the power; 0: none
Timed time(const HopperVariant& variant, const AttentionProblem& p, const HopperOptions& options,
           double power_seconds, std::uint64_t seed) {
    const CudaStream stream;
    const DeviceAttentionData data(p, seed, stream);
    const DeviceBuffer workspace(64);
    std::vector<float> lse(static_cast<std::size_t>(p.batch * p.heads_q * p.len_q));
    const LseView& there = data.tensors().lse;
    // NaN: what is not written shows.
    FA_CUDA_CHECK(cudaMemsetAsync(there.data, 0xff, lse.size() * sizeof(float), stream.get()));
    TimedGraph graph(stream, [&](std::int64_t, cudaStream_t on) {
        variant.run(p, data.tensors(), workspace.bytes().first(sizeof(int)), on);
    });
    for (int n = 0; n < 3; ++n) graph.replay();  // the clock under load
    std::vector<double> seconds;
    for (int n = 0; n < options.runs; ++n) seconds.push_back(graph.replay());
    const double clock = clock_mhz(stream);
    const auto power = gpu_power([&] { graph.replay(); }, power_seconds);
    let_cool(power_seconds);
    std::ranges::nth_element(seconds, seconds.begin() + options.runs / 2);
    FA_CUDA_CHECK(
        cudaMemcpy(lse.data(), there.data, lse.size() * sizeof(float), cudaMemcpyDeviceToHost));
    return {
        seconds[static_cast<std::size_t>(options.runs / 2)] / static_cast<double>(graph.launches()),
        clock, power, std::move(lse)};
}

void show_measured(Program& program, const HopperOptions& options, AttentionProblem p) {
    std::vector<std::string> headers{"variant", "registers", "local"};
    for (std::int64_t length : options.lengths) headers.push_back(fmt::format("T = {}", length));
    headers.push_back("MHz");
    headers.push_back("power");
    TextTable table(headers);
    std::vector<double> whole;
    std::vector<std::vector<float>> whole_lse;
    const auto measure = [&](const HopperVariant& variant) {
        const KernelResources r = variant.resources(p);
        std::vector<std::string> cells{std::string(variant.name), fmt::format("{}", r.registers),
                                       fmt::format("{} B", r.local_bytes)};
        nlohmann::ordered_json row{{"head_dim", p.head_dim},      {"batch", p.batch},
                                   {"heads_q", p.heads_q},        {"causal", p.causal},
                                   {"variant", variant.name},     {"registers", r.registers},
                                   {"local_bytes", r.local_bytes}};
        double clock = 0, largest = 0;
        std::optional<double> power;
        for (std::size_t n = 0; n < options.lengths.size(); ++n) {
            p.len_q = p.len_kv = options.lengths[n];
            const bool last = n + 1 == options.lengths.size();
            const Timed timed =
                time(variant, p, options, last ? options.power_seconds : 0, program.seed);
            const double rate = 1e-12 * p.flops() / timed.seconds;
            clock = timed.clock_mhz;
            power = timed.power;
            const bool first = whole.size() <= n;
            if (first) whole.push_back(rate), whole_lse.push_back(timed.lse);
            for (std::size_t i = 0; i < timed.lse.size(); ++i)
                largest = larger_or_nan(largest, std::fabs(static_cast<double>(timed.lse[i]) -
                                                           static_cast<double>(whole_lse[n][i])));
            cells.push_back(
                first ? fmt::format("{:.0f}", rate)
                      : fmt::format("{:.0f} ({:+.0f} %)", rate, 100 * (rate / whole[n] - 1)));
            row[fmt::format("T{}", options.lengths[n])] = rate;
            row[fmt::format("clock_mhz_T{}", options.lengths[n])] = clock;
        }
        cells.push_back(fmt::format("{:.0f}", clock));
        cells.push_back(watts(power));
        row["power_w"] = number_or_null(power);
        table.add(cells);
        program.checks.at_most(
            fmt::format("{}, on the GPU: LSE from the kernel's as it is", name_of(variant.name, p)),
            largest, 1e-4);
        program.results.extras["ablations"].push_back(row);
    };
    if (p.head_dim > 64)
        for_each_hopper_variant128_on_gpu(measure);
    else
        for_each_hopper_variant64_on_gpu(measure);
    fmt::print("B{} H{} d{}: TFLOP/s measured; clock and mean power at the last T.\n\n{}", p.batch,
               p.heads_q, p.head_dim, table.str());
}
#endif

/// Errors on the executor.
void show_errors_of(Program& program, AttentionProblem p, std::int64_t counted_length) {
    // Two lengths that end within a block, the second without a mask.
    p.batch = p.heads_q = p.heads_kv = 1;
    p.len_q = p.len_kv = counted_length - 3;
    p.causal = true;
    AttentionProblem full = p;
    full.causal = false;
    full.len_q = counted_length / 2 + 1;
    std::vector<VariantErrors> causal_errors, full_errors;
    for_each_variant_error(p, program.seed,
                           [&](const VariantErrors& e) { causal_errors.push_back(e); });
    for_each_variant_error(full, program.seed,
                           [&](const VariantErrors& e) { full_errors.push_back(e); });
    fmt::print("Largest errors against fp64 on the executor: {}, and\n{}.\n\n", describe(p),
               describe(full));
    TextTable table({"variant", "O, causal", "LSE", "O, full", "LSE"});
    for (std::size_t i = 0; i < causal_errors.size(); ++i) {
        const VariantErrors &c = causal_errors[i], &f = full_errors[i];
        table.add({std::string(c.name), fmt::format("{:.2e}", c.o), fmt::format("{:.1e}", c.lse),
                   fmt::format("{:.2e}", f.o), fmt::format("{:.1e}", f.lse)});
        double worst = 0;
        for (const VariantErrors* e : {&c, &f})
            worst = larger_or_nan(worst, larger_or_nan(e->o / e->o_bound, e->lse / e->lse_bound));
        program.checks.at_most(fmt::format("{}: largest error over its bound", name_of(c.name, p)),
                               worst, 1);
    }
    fmt::print("{}", table.str());
}

}  // namespace

void show_ablations(Program& program, const HopperOptions& options) {
    AttentionProblem of64 = options.shape, of128 = options.shape;
    of64.dtype = of128.dtype = DType::bf16;
    of64.head_dim = 64;
    of128.head_dim = 128;
    of128.heads_q = of128.heads_kv = options.heads128;
    print_heading("One idea less, or one more");
    show_errors_of(program, of64, options.counted_length);
    print_heading("One idea less, or one more, 128 channels");
    show_errors_of(program, of128, options.counted_length);
    print_heading("One idea less, or one more, measured");
#ifdef FA_HOPPER_ENABLED
    if (hopper_is_here(program)) {
        show_measured(program, options, of64);
        print_heading("One idea less, or one more, 128 channels, measured");
        return show_measured(program, options, of128);
    }
#endif
    fmt::print("No times: they need a GPU of compute capability 9.0.\n");
}

}  // namespace fa
