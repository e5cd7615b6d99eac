#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "chapters/04_cuda_tiled/multiprocessor.h"
#include "chapters/08_tensor_cores/experiments.h"
#include "chapters/08_tensor_cores/step_counts.h"
#include "common/text_table.h"
#ifdef FA_CUDA_ENABLED
#include "chapters/08_tensor_cores/cuda_tensor_cores.h"
#include "chapters/08_tensor_cores/ladder.h"
#include "common/cuda/clock.h"
#include "common/cuda/device.h"
#include "common/cuda/timing.h"
#endif

namespace fa {
namespace {

/// Clocks of a multiprocessor's units for 64 queries and 64 keys of 64 channels.
struct TileClocks {
    double tensor = 0, shared = 0, exponentials = 0;

    double longest() const { return std::max({tensor, shared, exponentials}); }
};

// [model]
/// Tensor cores: 4 · 64³ operations. Shared memory: counted, what a problem with two tiles takes
/// more than a problem with one.
template <class Kernel, class Config>
TileClocks clocks_of(std::uint64_t seed) {
    constexpr double TENSOR_FLOP_PER_CLOCK = 4096;  // dense, 16 bits (H100 whitepaper)
    const auto wavefronts = [&](int tiles) {
        const AttentionProblem p{
            .len_q = Config::BLOCK_M, .len_kv = tiles * Config::BLOCK_N, .dtype = DType::bf16};
        return static_cast<double>(count<Kernel, Config>(p, seed).shared_wavefronts);
    };
    const double per_64 = 64.0 / Config::BLOCK_M * 64.0 / Config::BLOCK_N;
    return {.tensor = 4.0 * 64 * 64 * 64 / TENSOR_FLOP_PER_CLOCK,
            .shared = (wavefronts(2) - wavefronts(1)) * per_64 /
                      Multiprocessor::SHARED_WAVEFRONTS_PER_CLOCK,
            .exponentials = 64.0 * 64 / Multiprocessor::EXPONENTIALS_PER_CLOCK};
}
// [model]

/// Seconds for a problem if the busiest unit of all multiprocessors is busy all the time.
double seconds_for(const AttentionProblem& p, const TileClocks& clocks) {
    return static_cast<double>(tiles_of(p, 64, 64)) * clocks.longest() /
           (Multiprocessor::COUNT * Multiprocessor::CLOCK_HZ);
}

/// A step as the table shows it.
struct Step {
    std::string name, implementation;
    TileClocks clocks;
};

std::vector<Step> all_steps(std::uint64_t seed) {
    std::vector<Step> steps;
    for_each_step([&]<class S>(int, std::string_view name) {
        steps.push_back(
            {std::string(name), "cuda_" + std::string(name), clocks_of<LadderKernel<S>, S>(seed)});
    });
    steps.push_back({"last", "cuda_tensor_cores", clocks_of<TensorCoreKernel, LongRows64>(seed)});
    return steps;
}

#ifdef FA_CUDA_ENABLED
const Implementation& implementation_of(const std::string& name) {
    for (const Implementation* i : {&CUDA_MMA, &CUDA_LDMATRIX, &CUDA_SWIZZLE, &CUDA_REGISTERS,
                                    &CUDA_CP_ASYNC, &CUDA_MASKS, &CUDA_LAZY})
        if (i->name == name) return *i;
    return CUDA_TENSOR_CORES;
}

/// TFLOP/s of a step, and a row for the results.
double measured(Program& program, const TensorCoreOptions& options, const Step& step,
                const AttentionProblem& p) {
    const Implementation& implementation = implementation_of(step.implementation);
    TimedAttention timed(implementation, p, CacheState::warm, program.seed);
    measure(timed, 3);  // the clock under load
    const GpuTiming timing = measure(timed, options.runs);
    const double clock = clock_mhz(timed.stream());
    auto row = Results::row(implementation, p);
    row["status"] = "ok";
    row["median_ms"] = 1e3 * timing.median;
    row["min_ms"] = 1e3 * timing.fastest;
    row["runs"] = timing.runs;
    row["tflops"] = 1e-12 * p.flops() / timing.median;
    row["clock_mhz"] = clock;
    row["predicted_ms"] = 1e3 * seconds_for(p, step.clocks);
    row["bound_share"] = seconds_for(p, step.clocks) / timing.median;
    row["scratch_bytes"] = 0;
    program.results.rows.push_back(row);
    return 1e-12 * p.flops() / timing.median;
}

void show_measured(Program& program, const TensorCoreOptions& options,
                   const std::vector<Step>& steps) {
    const bool h200 = gpu_properties().name.find("H200") != std::string::npos;
    std::vector<std::string> headers{"step"};
    for (std::int64_t length : options.lengths) headers.push_back(fmt::format("T = {}", length));
    TextTable table(headers);
    std::map<std::string, double> last;  // at the longest length
    for (const Step& step : steps) {
        std::vector<std::string> cells{step.name};
        for (std::int64_t length : options.lengths) {
            AttentionProblem p = options.shape;
            p.len_q = p.len_kv = length;
            const double rate = measured(program, options, step, p);
            cells.push_back(fmt::format("{:.0f}", rate));
            last[step.name] = rate;
            if (h200)
                program.checks.at_most(
                    fmt::format("{}, T {}: not faster than its units allow", step.name, length),
                    rate / (1e-12 * p.flops() / seconds_for(p, step.clocks)), 1.05);
        }
        table.add(cells);
    }
    fmt::print("TFLOP/s measured on {}: CUDA graphs, warm L2, medians of {} replays.\n\n{}",
               gpu_properties().name, options.runs, table.str());
    program.checks.at_least("swizzle over ldmatrix: times as fast",
                            last["swizzle"] / last["ldmatrix"], 1.3);
    program.checks.at_least("the last step over the first: times as fast",
                            last["last"] / last["mma"], 3);
}
#endif

}  // namespace

void show_steps(Program& program, const TensorCoreOptions& options) {
    print_heading("The steps: predicted for an H200, and measured");
    fmt::print(
        "Clocks that each unit of an SM is busy with 64 queries, 64 keys and 64 channels.\n\n");
    const std::vector<Step> steps = all_steps(program.seed);
    AttentionProblem p = options.shape;
    p.len_q = p.len_kv = 4096;
    TextTable table(
        {"step", "tensor cores", "shared memory", "exponentials", "waits for", "at most, TFLOP/s"});
    table.left(4);
    for (const Step& step : steps) {
        const TileClocks& c = step.clocks;
        const double bound = 1e-12 * p.flops() / seconds_for(p, c);
        table.add({step.name, fmt::format("{:.0f}", c.tensor), fmt::format("{:.0f}", c.shared),
                   fmt::format("{:.0f}", c.exponentials),
                   c.longest() == c.shared ? "shared memory" : "tensor cores, exponentials",
                   fmt::format("{:.0f}", bound)});
        program.results.extras["predicted"].push_back({{"step", step.name},
                                                       {"tensor", c.tensor},
                                                       {"shared", c.shared},
                                                       {"exponentials", c.exponentials},
                                                       {"tflops_at_4096", bound}});
    }
    fmt::print("{}\n", table.str());
    program.checks.at_most("swizzle: clocks of shared memory over those of ldmatrix",
                           steps[2].clocks.shared / steps[1].clocks.shared, 0.4);
    program.checks.at_most("last: clocks of shared memory over those of swizzle",
                           steps.back().clocks.shared / steps[2].clocks.shared, 0.5);
#ifdef FA_CUDA_ENABLED
    if (program.where() == Device::cuda) return show_measured(program, options, steps);
#endif
    fmt::print("Not measured: no GPU is used here.\n");
}

}  // namespace fa
