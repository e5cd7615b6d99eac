#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "chapters/04_cuda_tiled/experiments.h"
#include "chapters/04_cuda_tiled/fused_kinds.h"
#include "chapters/04_cuda_tiled/multiprocessor.h"
#include "common/attention_data.h"
#include "common/cost_model.h"
#include "common/text_table.h"
#ifdef FA_CUDA_ENABLED
#include "chapters/04_cuda_tiled/naive_attention_cuda.h"
#include "chapters/04_cuda_tiled/tiled_attention.h"
#include "common/cuda/device.h"
#include "common/cuda/timing.h"
#endif

namespace fa {
namespace {

/// Seconds that each unit is busy, all multiprocessors at work.
struct Busy {
    double memory = 0, products = 0, shared = 0, exponentials = 0;
    double longest() const { return std::max({memory, products, shared, exponentials}); }
    std::string_view name() const {
        const double most = longest();
        return most == memory     ? "memory"
               : most == products ? "products"
               : most == shared   ? "shared memory"
                                  : "exponentials";
    }
};

/// A line of the table: a kernel, or a step of the naive way.
struct Prediction {
    std::string name;
    Busy busy;
};

/// Clocks of the shared memory for one tile: what a block with two tiles takes longer than a block
/// with one, counted by the executor.
template <class Kernel>
double wavefronts_per_tile(const AttentionProblem& shape, const KernelResources& r) {
    const auto wavefronts = [&](int tiles) {
        AttentionProblem p = shape;
        p.batch = p.heads_q = p.heads_kv = 1;
        p.len_q = r.block_m;
        p.len_kv = tiles * r.block_n;
        p.causal = false;
        return with_element_type(p.dtype, [&](auto element) {
            AttentionData<decltype(element)> data(p, 1);
            return static_cast<double>(
                run_on_executor<Kernel>(p, data.tensors(), {.count_banks = true})
                    .shared_wavefronts);
        });
    };
    return wavefronts(2) - wavefronts(1);
}

// [model]
/// What the units have to do for all tiles, masked halves included, over what 132 multiprocessors
/// do in a second.
template <class Kernel>
Busy predict_fused(const AttentionProblem& p) {
    using M = Multiprocessor;
    const KernelResources r = sizes_of<Kernel>(p, M::SHARED_BYTES_PER_BLOCK);
    const auto tiles = static_cast<double>(tiles_of(p, r.block_m, r.block_n));
    const double scores = tiles * r.block_m * r.block_n;
    const double clocks_per_second = M::COUNT * M::CLOCK_HZ;
    const double padded_dim = p.head_dim <= 64 ? 64 : p.head_dim <= 128 ? 128 : 256;
    return {
        .memory = q_outer_cost(p, {r.block_m, r.block_n}).bytes / h200_ceilings().bytes_per_s,
        .products = 2 * scores * padded_dim / M::MULTIPLY_ADDS_PER_CLOCK / clocks_per_second,
        .shared = tiles * wavefronts_per_tile<Kernel>(p, r) / M::SHARED_WAVEFRONTS_PER_CLOCK /
                  clocks_per_second,
        .exponentials = scores / M::EXPONENTIALS_PER_CLOCK / clocks_per_second,
    };
}
// [model]

std::vector<Prediction> predictions(const AttentionProblem& p) {
    std::vector<Prediction> list;
    Ceilings ceilings = h200_ceilings();
    if (p.dtype == DType::f32)  // no tensor cores: TF32 is off
        ceilings.flops_per_s = 2 * Multiprocessor::MULTIPLY_ADDS_PER_CLOCK * Multiprocessor::COUNT *
                               Multiprocessor::CLOCK_HZ;
    constexpr std::array STEPS{"naive: S = Q K^T", "naive: P = softmax(S)", "naive: O = P V"};
    const auto steps = naive_cost(p, DType::f32);
    for (std::size_t i = 0; i < steps.size(); ++i)
        list.push_back({STEPS[i],
                        {.memory = steps[i].bytes / ceilings.bytes_per_s,
                         .products = steps[i].flops / ceilings.flops_per_s,
                         .exponentials = steps[i].exponentials / ceilings.exponentials_per_s}});
    for_each_fused_kernel([&]<class Kernel>(std::string_view name) {
        list.push_back({std::string(name), predict_fused<Kernel>(p)});
    });
    return list;
}

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
                   milliseconds(b.longest()), std::string(b.name())});
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
            program.checks.at_most(name + ": not faster than the units allow", predicted / *seconds,
                                   1.05);
        } else {
            cells.insert(cells.end(), {"-", "-", "-"});
        }
        table.add(cells);
    }
    fmt::print("{}\n", table.str());
#ifdef FA_CUDA_ENABLED
    if (program.where() == Device::cuda)
        fmt::print(
            "Measured on {}: events around a CUDA graph of launches, warm L2, median of {} "
            "replays.\n",
            gpu_properties().name, options.runs);
    else
        fmt::print("Not measured: {}\n",
                   program.device == DeviceChoice::cpu ? "--device cpu" : why_no_gpu());
#else
    fmt::print("Not measured: this program was built without CUDA.\n");
#endif
    program.checks.at_most("register tiles: share of the shared-memory time of the plain kernel",
                           list.back().busy.shared / list[list.size() - 2].busy.shared, 0.5);
}

}  // namespace fa
