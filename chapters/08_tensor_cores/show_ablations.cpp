#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "chapters/08_tensor_cores/ablation_kinds.h"
#include "chapters/08_tensor_cores/experiments.h"
#include "chapters/08_tensor_cores/step_counts.h"
#include "common/text_table.h"
#ifdef FA_CUDA_ENABLED
#include "chapters/08_tensor_cores/ablations.h"
#include "common/cuda/timing.h"
#endif

namespace fa {
namespace {

#ifdef FA_CUDA_ENABLED
/// Median seconds of a launch.
double seconds_of(const Ablation& ablation, const AttentionProblem& p,
                  const TensorCoreOptions& options, std::uint64_t seed) {
    const CudaStream stream;
    const DeviceAttentionData data(p, seed, stream);
    TimedGraph graph(stream,
                     [&](std::int64_t, cudaStream_t on) { ablation.run(p, data.tensors(), on); });
    std::vector<double> seconds;
    for (int n = 0; n < options.runs; ++n) seconds.push_back(graph.replay());
    std::ranges::nth_element(seconds, seconds.begin() + options.runs / 2);
    return seconds[static_cast<std::size_t>(options.runs / 2)] /
           static_cast<double>(graph.launches());
}

void show_measured(Program& program, const TensorCoreOptions& options) {
    AttentionProblem p = options.shape;
    p.dtype = DType::bf16;
    p.head_dim = 64;
    std::vector<std::string> headers{"variant", "registers", "spilled"};
    for (std::int64_t length : options.lengths) headers.push_back(fmt::format("T = {}", length));
    TextTable table(headers);
    std::vector<double> whole;
    for_each_ablation([&](const Ablation& ablation) {
        const KernelResources r = ablation.resources(p);
        std::vector<std::string> cells{std::string(ablation.name), fmt::format("{}", r.registers),
                                       fmt::format("{} B", r.local_bytes)};
        nlohmann::ordered_json row{{"variant", ablation.name}, {"registers", r.registers}};
        for (std::size_t n = 0; n < options.lengths.size(); ++n) {
            p.len_q = p.len_kv = options.lengths[n];
            const double rate = 1e-12 * p.flops() / seconds_of(ablation, p, options, program.seed);
            if (whole.size() <= n) whole.push_back(rate);
            cells.push_back(rate == whole[n] ? fmt::format("{:.0f}", rate)
                                             : fmt::format("{:.0f} ({:+.0f} %)", rate,
                                                           100 * (rate / whole[n] - 1)));
            row[fmt::format("T{}", options.lengths[n])] = rate;
        }
        table.add(cells);
        program.results.extras["ablations"].push_back(row);
    });
    fmt::print("TFLOP/s measured, and what is lost by taking an idea out.\n\n{}\n", table.str());
}
#endif

}  // namespace

void show_ablations(Program& program, const TensorCoreOptions& options) {
    print_heading("Without one idea, measured");
    const AttentionProblem p = counted_problem(options);
    fmt::print("{}, counted by the executor\n\n", describe(p));
    TextTable table({"variant", "read from memory", "clocks of shared memory", "barriers"});
    std::uint64_t clocks = 0, without_swizzle = 0, read = 0, without_skipping = 0;
    for_each_ablated([&]<class Config>(std::string_view name) {
        const executor::Counters c = count<TensorCoreKernel, Config>(p, program.seed);
        table.add({std::string(name), fmt::format("{} B", c.global_load_bytes),
                   fmt::format("{}", c.shared_wavefronts), fmt::format("{}", c.barriers)});
        if (clocks == 0) clocks = c.shared_wavefronts, read = c.global_load_bytes;
        if (name == "no swizzle") without_swizzle = c.shared_wavefronts;
        if (name == "no tile skipped") without_skipping = c.global_load_bytes;
    });
    fmt::print("{}\n", table.str());
    const auto ratio = [](std::uint64_t a, std::uint64_t b) {
        return static_cast<double>(a) / static_cast<double>(b);
    };
    program.checks.at_least("no swizzle: clocks of shared memory over the kernel's",
                            ratio(without_swizzle, clocks), 3);
    program.checks.at_least("no tile skipped: bytes read over the kernel's",
                            ratio(without_skipping, read), 1.1);
#ifdef FA_CUDA_ENABLED
    if (program.where() == Device::cuda) return show_measured(program, options);
#endif
    fmt::print("No times: no GPU is used here.\n");
}

}  // namespace fa
