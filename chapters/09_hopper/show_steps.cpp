#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "chapters/09_hopper/experiments.h"
#include "chapters/09_hopper/hopper_model.h"
#include "common/text_table.h"
#ifdef FA_HOPPER_ENABLED
#include "chapters/09_hopper/cuda_hopper.h"
#include "chapters/09_hopper/ladder.h"
#include "common/cuda/clock.h"
#include "common/cuda/device.h"
#include "common/cuda/power.h"
#include "common/cuda/timing.h"
#endif

namespace fa {
namespace {

AttentionProblem problem_of(const HopperOptions& options, std::int64_t length) {
    AttentionProblem p = options.shape;
    p.len_q = p.len_kv = length;
    return p;
}

double rate(const AttentionProblem& p, double seconds) {
    return 1e-12 * p.flops() / seconds;
}

const char* name_of(Schedule schedule) {
    switch (schedule) {
        case Schedule::load_too: return "a load, products, softmax";
        case Schedule::in_turn: return "products, softmax";
        case Schedule::shadow: return "Q K, then P V or softmax";
        case Schedule::together: break;
    }
    return "the busiest unit";
}

/// The steps, and the last kernel for the problem of a length.
std::vector<ModelledStep> steps_for(const AttentionProblem& p) {
    std::vector<ModelledStep> steps = modelled_steps();
    steps.push_back(modelled_last(p));
    return steps;
}

void show_clocks(Program& program) {
    fmt::print(
        "Clocks that the units of an SM are busy with 64 queries, 64 keys and 64 channels; what "
        "is waited for.\n\n");
    TextTable table({"step", "tensor", "exponentials", "multiply-adds", "maxima", "issue", "shared",
                     "clocks", "one after the other"});
    table.left(8);
    for (const ModelledStep& step : modelled_steps()) {
        const UnitClocks c = unit_clocks(step);
        const double per_64 = 64.0 / step.block_m() * 64.0 / step.block_n;
        const auto cell = [&](double clocks) { return fmt::format("{:.0f}", clocks * per_64); };
        table.add({step.name, cell(c.tensor), cell(c.exponentials), cell(c.multiply_adds),
                   cell(c.comparisons), cell(c.issue), cell(c.shared), cell(block_clocks(step)),
                   name_of(step.schedule)});
        program.results.extras["clocks"].push_back({{"step", step.name},
                                                    {"tensor", c.tensor * per_64},
                                                    {"exponentials", c.exponentials * per_64},
                                                    {"multiply_adds", c.multiply_adds * per_64},
                                                    {"comparisons", c.comparisons * per_64},
                                                    {"issue", c.issue * per_64},
                                                    {"shared", c.shared * per_64},
                                                    {"predicted", block_clocks(step) * per_64}});
    }
    fmt::print("{}\n", table.str());
}

/// Predicted rates by name and length.
using Rates = std::map<std::string, std::vector<double>>;

std::vector<std::string> with_lengths(std::vector<std::string> headers,
                                      const HopperOptions& options) {
    for (std::int64_t length : options.lengths) headers.push_back(fmt::format("T = {}", length));
    return headers;
}

Rates show_predicted(Program& program, const HopperOptions& options) {
    fmt::print(
        "Assumed: a load that nothing hides takes {:.0f} clocks, and its bytes at {:.0f} a clock; "
        "beginning and end of a\ntile take as long as {:.0f} blocks of 128 keys, {:.0f} where "
        "blocks "
        "fetch the next one. TFLOP/s at {:.0f} MHz,\nB{} H{} d{}{}; and below, scores that are "
        "computed over those that are wanted.\n\n",
        HopperRates::TRIP_CLOCKS, HopperRates::L2_BYTES, HopperRates::ENDS,
        HopperRates::PERSISTENT_ENDS, options.clock_mhz, options.shape.batch, options.shape.heads_q,
        options.shape.head_dim, options.shape.causal ? " causal" : "");
    TextTable table(with_lengths({"step"}, options)), waste(with_lengths({"tiles"}, options));
    Rates rates;
    const double clock_hz = 1e6 * options.clock_mhz;
    const std::size_t count = steps_for(problem_of(options, options.lengths.front())).size();
    for (std::size_t i = 0; i < count; ++i) {
        std::vector<std::string> cells, wasted;
        std::string name;
        for (std::int64_t length : options.lengths) {
            const AttentionProblem p = problem_of(options, length);
            const ModelledStep step = steps_for(p)[i];
            const double predicted = rate(p, predicted_seconds(step, p, clock_hz));
            rates[name = step.name].push_back(predicted);
            cells.push_back(fmt::format("{:.0f}", predicted));
            wasted.push_back(fmt::format("{:.2f}", causal_waste(step, p)));
            program.results.extras["predicted"].push_back({{"step", step.name},
                                                           {"length", length},
                                                           {"clock_mhz", options.clock_mhz},
                                                           {"tflops", predicted},
                                                           {"waste", causal_waste(step, p)}});
        }
        cells.insert(cells.begin(), name);
        table.add(cells);
        // Where it changes.
        const ModelledStep step = steps_for(problem_of(options, 4096))[i];
        if (name == "wgmma" || name == "warpgroups" || name == "diagonal" || name == "last") {
            wasted.insert(wasted.begin(),
                          name == "last"
                              ? name
                              : fmt::format("{}: {} x {}", name, step.block_m(), step.block_n));
            waste.add(wasted);
        }
    }
    fmt::print("{}\n{}", table.str(), waste.str());
    return rates;
}

#ifdef FA_HOPPER_ENABLED
const Implementation& implementation_of(const std::string& name) {
    for (const Implementation* i :
         {&CUDA_WGMMA, &CUDA_PRODUCER, &CUDA_OVERLAP, &CUDA_PING_PONG, &CUDA_WARPGROUPS,
          &CUDA_DIAGONAL, &CUDA_PERSISTENT, &CUDA_HOPPER_LAZY})
        if (i->name == "cuda_" + name) return *i;
    return CUDA_HOPPER;
}

/// A step's rate, and the clock and power it had.
struct Measured {
    double tflops, clock_mhz;
    std::optional<double> power;
};

Measured measured(Program& program, const HopperOptions& options, const ModelledStep& step,
                  const AttentionProblem& p) {
    const Implementation& implementation = implementation_of(step.name);
    TimedAttention timed(implementation, p, CacheState::warm, program.seed);
    measure(timed, 3);  // the clock under load
    const GpuTiming timing = measure(timed, options.runs);
    const double clock = clock_mhz(timed.stream());
    const auto power = gpu_power([&] { timed.replay(); }, options.power_seconds);
    let_cool(options.power_seconds);
    const double predicted = predicted_seconds(step, p, 1e6 * clock);
    auto row = Results::row(implementation, p);
    row["status"] = "ok";
    row["median_ms"] = 1e3 * timing.median;
    row["min_ms"] = 1e3 * timing.fastest;
    row["runs"] = timing.runs;
    row["tflops"] = rate(p, timing.median);
    row["clock_mhz"] = clock;
    row["power_w"] = number_or_null(power);
    row["predicted_ms"] = 1e3 * predicted;
    row["bound_share"] = least_seconds(step, p, 1e6 * clock) / timing.median;
    row["scratch_bytes"] = timed.workspace_bytes();
    program.results.rows.push_back(row);
    return {rate(p, timing.median), clock, power};
}

void show_measured(Program& program, const HopperOptions& options) {
    const bool h200 = gpu_properties().name.find("H200") != std::string::npos;
    TextTable table(with_lengths({"step"}, options));
    std::map<std::string, double> at_longest;
    const std::size_t count = steps_for(problem_of(options, options.lengths.front())).size();
    for (std::size_t i = 0; i < count; ++i) {
        std::vector<std::string> cells, clocks{""};
        std::string name;
        for (std::int64_t length : options.lengths) {
            const AttentionProblem p = problem_of(options, length);
            const ModelledStep step = steps_for(p)[i];
            const Measured m = measured(program, options, step, p);
            at_longest[name = step.name] = m.tflops;
            cells.push_back(fmt::format("{:.0f} of {:.0f}", m.tflops,
                                        rate(p, predicted_seconds(step, p, 1e6 * m.clock_mhz))));
            clocks.push_back(fmt::format("{:.0f} MHz, {}", m.clock_mhz, watts(m.power)));
            if (h200)
                program.checks.at_most(
                    fmt::format("{}, T {}: not faster than its units allow", name, length),
                    m.tflops * least_seconds(step, p, 1e6 * m.clock_mhz) / (1e-12 * p.flops()),
                    1.05);
        }
        cells.insert(cells.begin(), name);
        table.add(cells);
        table.add(clocks);
    }
    fmt::print(
        "TFLOP/s measured on {}, of those predicted for the clock that was measured right behind: "
        "CUDA\ngraphs, warm L2, medians of {} replays. Power: mean of the whole card over {:g} s "
        "of "
        "more replays.\n\n{}",
        gpu_properties().name, options.runs, options.power_seconds, table.str());
    program.checks.at_least("overlap over producer: times as fast",
                            at_longest["overlap"] / at_longest["producer"], 1);
    program.checks.at_least("the last kernel over the first step: times as fast",
                            at_longest["last"] / at_longest["wgmma"], 1.5);
}
#endif

}  // namespace

void show_steps(Program& program, const HopperOptions& options) {
    print_heading("The steps, predicted for an H200");
    show_clocks(program);
    const Rates rates = show_predicted(program, options);
    const auto least_gain = [&](const std::string& better, const std::string& worse) {
        double least = 1e30;
        for (std::size_t i = 0; i < options.lengths.size(); ++i)
            least = std::min(least, rates.at(better)[i] / rates.at(worse)[i]);
        return least;
    };
    program.checks.at_least("predicted: producer over wgmma, at every T",
                            least_gain("producer", "wgmma"), 1);
    program.checks.at_least("predicted: overlap over producer, at every T",
                            least_gain("overlap", "producer"), 1);
    program.checks.at_least("predicted: each at its own diagonal over not, at every T",
                            least_gain("diagonal", "warpgroups"), 1);
    print_heading("The steps, measured");
#ifdef FA_HOPPER_ENABLED
    if (hopper_is_here(program)) return show_measured(program, options);
#endif
    fmt::print("Not measured: that needs a GPU of compute capability 9.0.\n");
}

}  // namespace fa
