#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "chapters/04_cuda_tiled/multiprocessor.h"
#include "chapters/09_hopper/experiments.h"
#include "chapters/09_hopper/fit_pace.h"
#include "chapters/09_hopper/hopper_host.h"
#include "common/text_table.h"
#ifdef FA_HOPPER_ENABLED
#include "chapters/09_hopper/cuda_hopper.h"
#include "common/cuda/device.h"
#include "common/cuda/power.h"
#include "common/cuda/timing.h"
#endif

namespace fa {
namespace {

constexpr std::array<std::int64_t, 4> BATCHES{1, 2, 4, 8};
constexpr std::array<std::int64_t, 8> LENGTHS{256, 512, 1024, 1536, 2048, 3072, 4096, 8192};

/// An option, whatever its type.
struct Size {
    std::string name;
    TileKind tile;
    TilePace pace;
    std::vector<TimedLaunch> times{};
};

std::vector<Size> sizes_for(std::int64_t head_dim) {
    const auto list = [](const auto& options) {
        return std::apply(
            [](const auto&... option) {
                return std::vector{
                    Size{std::string(option.name), option.tile_kind(), option.pace}...};
            },
            options);
    };
    return head_dim > 64 ? list(options128<Rescale::rare>()) : list(options64<Rescale::rare>());
}

/// The GPU, where there is one that can be measured.
struct Machine {
    int multiprocessors = Multiprocessor::COUNT;
    bool measured = false, h200 = false;
};

Machine machine_of([[maybe_unused]] const Program& program) {
    Machine machine;
#ifdef FA_HOPPER_ENABLED
    if (hopper_is_here(program))
        machine = {gpu_properties().multiprocessors, true,
                   gpu_properties().name.find("H200") != std::string::npos};
#endif
    return machine;
}

#ifdef FA_HOPPER_ENABLED
/// Microseconds of each size with a problem, inputs in L2 where they fit: medians of replays in
/// turns, each behind a rest, so that none pays for the power of another.
std::vector<double> measured_times(const AttentionProblem& p, std::uint64_t seed) {
    constexpr int RUNS = 5;
    constexpr double REST_SECONDS = 8e-3;
    std::vector<std::unique_ptr<TimedAttention>> sizes;
    for (const HopperSize& size :
         p.head_dim > 64 ? hopper_sizes128_on_gpu() : hopper_sizes64_on_gpu())
        sizes.push_back(
            std::make_unique<TimedAttention>(size.implementation, p, CacheState::warm, seed));
    std::vector<std::vector<double>> times(sizes.size());
    for (int run = 0; run < RUNS; ++run)
        for (std::size_t n = 0; n < sizes.size(); ++n) {
            let_cool(REST_SECONDS);
            sizes[n]->replay();  // the clock under load
            times[n].push_back(1e6 * sizes[n]->replay() /
                               static_cast<double>(sizes[n]->launches()));
        }
    std::vector<double> medians;
    for (std::vector<double>& of_one : times) {
        std::ranges::nth_element(of_one, of_one.begin() + RUNS / 2);
        medians.push_back(of_one[RUNS / 2]);
    }
    return medians;
}
#endif

/// Tries all sizes with a problem.
/// @return the one that is chosen, its rate, and, where it was measured, what the best has more
std::string try_sizes(Program& program, const Machine& machine, std::vector<Size>& sizes,
                      const AttentionProblem& p, std::vector<double>& losses) {
    std::vector<double> predicted, times;
    for (const Size& size : sizes)
        predicted.push_back(
            predicted_microseconds(p, machine.multiprocessors, size.tile, size.pace));
    times = predicted;
#ifdef FA_HOPPER_ENABLED
    if (machine.measured) times = measured_times(p, program.seed);
#endif
    for (std::size_t n = 0; n < sizes.size(); ++n) {
        if (machine.measured) sizes[n].times.push_back({p, times[n]});
        program.results.extras["sizes"].push_back(
            {{"head_dim", p.head_dim},
             {"causal", p.causal},
             {"batch", p.batch},
             {"heads_q", p.heads_q},
             {"length", p.len_q},
             {"size", sizes[n].name},
             {"predicted_us", predicted[n]},
             {"measured_us", number_or_null(machine.measured, times[n])}});
    }
    const auto chosen =
        static_cast<std::size_t>(std::ranges::min_element(predicted) - predicted.begin());
    losses.push_back(times[chosen] / *std::ranges::min_element(times) - 1);
    std::string cell =
        fmt::format("{} {:.0f}", sizes[chosen].name, 1e-6 * p.flops() / times[chosen]);
    if (losses.back() >= 0.005) cell += fmt::format(" (best +{:.0f} %)", 100 * losses.back());
    return cell;
}

void show_table(Program& program, const Machine& machine, std::vector<Size>& sizes,
                AttentionProblem p, std::vector<double>& losses) {
    std::vector<std::string> headers{"T"};
    for (const std::int64_t batch : BATCHES) headers.push_back(fmt::format("B = {}", batch));
    TextTable table(headers);
    for (const std::int64_t length : LENGTHS) {
        std::vector<std::string> cells{fmt::format("{}", length)};
        for (const std::int64_t batch : BATCHES) {
            p.batch = batch;
            p.len_q = p.len_kv = length;
            cells.push_back(try_sizes(program, machine, sizes, p, losses));
        }
        table.add(cells);
    }
    fmt::print("H{} d{}{}:\n\n{}\n", p.heads_q, p.head_dim, p.causal ? " causal" : "", table.str());
}

/// Paces as they are, and as the times of this GPU would have them.
void show_paces(Program& program, const Machine& machine, const std::vector<Size>& sizes) {
    TextTable table({"size", "launch", "tile", "64 keys", "at least", "fitted: launch", "tile",
                     "64 keys", "at least"});
    const auto cells_of = [](const TilePace& pace) {
        return std::array{
            fmt::format("{:.1f}", pace.launch), fmt::format("{:.1f}", pace.start),
            fmt::format("{:.3f}", pace.step),
            pace.alone > pace.step ? fmt::format("{:.2f}", pace.alone) : std::string("-")};
    };
    for (const Size& size : sizes) {
        const TilePace fitted = fit_pace(size.times, machine.multiprocessors, size.tile, size.pace);
        std::vector<std::string> row{size.name};
        for (const TilePace& pace : {size.pace, fitted})
            for (const std::string& cell : cells_of(pace)) row.push_back(cell);
        table.add(row);
        program.results.extras["paces"].push_back({{"size", size.name},
                                                   {"launch_us", fitted.launch},
                                                   {"start_us", fitted.start},
                                                   {"step_us", fitted.step},
                                                   {"alone_us", fitted.alone}});
    }
    fmt::print("Paces in microseconds, as the choice has them and as these times would:\n\n{}\n",
               table.str());
}

}  // namespace

void show_sizes(Program& program, const HopperOptions& options) {
    print_heading("Which size for which problem");
    const Machine machine = machine_of(program);
    fmt::print("The size that should be the quickest on {} multiprocessors, and TFLOP/s {}.\n\n",
               machine.multiprocessors,
               machine.measured ? "measured (and what\nthe best of all sizes would have more)"
                                : "as predicted for an H200");
    AttentionProblem p = options.shape;
    p.dtype = DType::bf16;
    std::vector<double> losses;
    std::vector<Size> all;
    for (const std::int64_t head_dim : {64, 128}) {
        p.head_dim = head_dim;
        p.heads_q = p.heads_kv = head_dim == 64 ? options.shape.heads_q : options.heads128;
        std::vector<Size> sizes = sizes_for(head_dim);
        for (const bool causal : {true, false}) {
            p.causal = causal;
            show_table(program, machine, sizes, p, losses);
        }
        all.insert(all.end(), sizes.begin(), sizes.end());
    }
    if (machine.measured) show_paces(program, machine, all);
    if (!machine.h200) return;  // elsewhere nothing is promised
    double sum = 0;
    for (const double loss : losses) sum += loss;
    program.checks.at_most("time of the size that is chosen over the best one's, mean, less 1",
                           sum / static_cast<double>(losses.size()), 0.02);
    program.checks.at_most("the same, the largest", *std::ranges::max_element(losses), 0.15);
}

}  // namespace fa
