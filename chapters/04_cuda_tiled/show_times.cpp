#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "chapters/04_cuda_tiled/experiments.h"
#include "chapters/04_cuda_tiled/predictions.h"
#include "common/text_table.h"
#ifdef FA_CUDA_ENABLED
#include "chapters/04_cuda_tiled/naive_attention_cuda.h"
#include "chapters/04_cuda_tiled/tiled_attention.h"
#include "common/cuda/device.h"
#include "common/cuda/timing.h"
#endif

namespace fa {
namespace {

/// Seconds of an implementation on the GPU, if there is one.
std::optional<double> measured(Program& program, const KernelOptions& options,
                               const std::string& name, double predicted) {
#ifdef FA_CUDA_ENABLED
    if (program.where() == Device::cuda)
        for (const Implementation* implementation :
             {&CUDA_NAIVE, &CUDA_TILED, &CUDA_REGISTER_TILED}) {
            if (implementation->name != "cuda_" + name) continue;
            const AttentionProblem& p = options.shape;
            auto row = Results::row(*implementation, p);
            row["predicted_ms"] = 1e3 * predicted;
            try {
                TimedAttention timed(*implementation, p, CacheState::warm, program.seed);
                const GpuTiming timing = measure(timed, options.runs);
                row["status"] = "ok";
                row["median_ms"] = 1e3 * timing.median;
                row["min_ms"] = 1e3 * timing.fastest;
                row["runs"] = timing.runs;
                row["tflops"] = 1e-12 * p.flops() / timing.median;
                row["bound_share"] = predicted / timing.median;
                row["scratch_bytes"] = timed.workspace_bytes();
                program.results.rows.push_back(row);
                return timing.median;
            } catch (const OutOfDeviceMemory& error) {
                row["status"] = "out_of_memory";
                row["reason"] = error.what();
                program.results.rows.push_back(row);
            }
        }
#endif
    static_cast<void>(program), static_cast<void>(options), static_cast<void>(name);
    static_cast<void>(predicted);
    return std::nullopt;
}

/// How the times were taken, or why there are none.
std::string how_measured(const Program& program, const KernelOptions& options) {
    if (program.device == DeviceChoice::cpu) return "Not measured: --device cpu";
#ifdef FA_CUDA_ENABLED
    if (program.where() == Device::cuda)
        return fmt::format(
            "Measured on {}: events around a CUDA graph of launches, warm L2, median of {} "
            "replays.",
            gpu_properties().name, options.runs);
    return "Not measured: " + why_no_gpu();
#else
    static_cast<void>(options);
    return "Not measured: this program was built without CUDA";
#endif
}

/// On the GPU that the prediction is for: nothing beats its units.
void check_measured(Program& program, const std::string& name, double predicted, double seconds) {
#ifdef FA_CUDA_ENABLED
    if (gpu_properties().name.find("H200") == std::string::npos) return;
    program.checks.at_most(name + ": not faster than the units allow", predicted / seconds, 1.05);
#else
    static_cast<void>(program), static_cast<void>(name);
    static_cast<void>(predicted), static_cast<void>(seconds);
#endif
}

std::string milliseconds(double seconds) {
    return fmt::format("{:.3f}", 1e3 * seconds);
}

}  // namespace

void show_times(Program& program, const KernelOptions& options) {
    const AttentionProblem& p = options.shape;
    print_heading("Times: predicted for an H200, and measured");
    fmt::print("{}, milliseconds for which each unit is busy.\n\n", describe(p));
    TextTable units({"kernel", "memory", "products", "shared memory", "exponentials", "predicted",
                     "waits for"});
    double naive = 0, tiled = 0, register_tiled = 0;
    const auto list = predictions(p);
    for (const Prediction& line : list) {
        const Busy& b = line.busy;
        units.add({line.name, milliseconds(b.memory), milliseconds(b.products),
                   b.shared > 0 ? milliseconds(b.shared) : "", milliseconds(b.exponentials),
                   milliseconds(b.longest()), std::string(b.bound())});
        (line.name == "tiled"            ? tiled
         : line.name == "register_tiled" ? register_tiled
                                         : naive) += b.longest();
        program.results.extras["predicted"].push_back({{"kernel", line.name},
                                                       {"memory_ms", 1e3 * b.memory},
                                                       {"products_ms", 1e3 * b.products},
                                                       {"shared_ms", 1e3 * b.shared},
                                                       {"exponentials_ms", 1e3 * b.exponentials}});
    }
    fmt::print("{}\n", units.str());

    double tiled_measured = 0;
    TextTable table({"implementation", "predicted, ms", "TFLOP/s", "measured, ms", "TFLOP/s",
                     "predicted / measured"});
    for (const auto& [name, predicted] : {std::pair<std::string, double>{"naive", naive},
                                          {"tiled", tiled},
                                          {"register_tiled", register_tiled}}) {
        std::vector<std::string> cells{name, milliseconds(predicted),
                                       fmt::format("{:.1f}", 1e-12 * p.flops() / predicted)};
        if (const auto seconds = measured(program, options, name, predicted)) {
            cells.insert(cells.end(), {milliseconds(*seconds),
                                       fmt::format("{:.1f}", 1e-12 * p.flops() / *seconds),
                                       fmt::format("{:.0f} %", 100 * predicted / *seconds)});
            check_measured(program, name, predicted, *seconds);
            if (name == "tiled") tiled_measured = *seconds;
            if (name == "register_tiled" && tiled_measured > 0)
                program.checks.at_least("register tiles: times as fast as the plain kernel",
                                        tiled_measured / *seconds, 1.5);
        } else {
            cells.insert(cells.end(), {"-", "-", "-"});
        }
        table.add(cells);
    }
    fmt::print("{}\n", table.str());
    fmt::print("{}\n", how_measured(program, options));
    program.checks.at_most("register tiles: clocks of shared memory over the plain kernel's",
                           list.back().busy.shared / list[list.size() - 2].busy.shared, 0.8);
}

}  // namespace fa
