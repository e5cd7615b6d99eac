#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
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
#include "common/cuda/timing.h"
#endif

namespace fa {
namespace {

constexpr std::array<std::int64_t, 4> BATCHES{1, 2, 4, 8};
constexpr std::array<std::int64_t, 8> LENGTHS{256, 512, 1024, 1536, 2048, 3072, 4096, 8192};

/// An option, whatever its type.
struct Size {
    std::string name;
    TileSize tile;
    TilePace pace;
    std::vector<TimedLaunch> times{};
};

std::vector<Size> sizes_for(std::int64_t head_dim) {
    const auto list = [](const auto& options) {
        return std::apply(
            [](const auto&... option) {
                return std::vector{
                    Size{std::string(option.name), option.tile_size(), option.pace}...};
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

/// Microseconds of the n-th size with a problem, where they can be measured.
std::optional<double> measured_time([[maybe_unused]] const AttentionProblem& p,
                                    [[maybe_unused]] std::size_t n,
                                    [[maybe_unused]] std::uint64_t seed, bool measured) {
    if (!measured) return {};
#ifdef FA_HOPPER_ENABLED
    constexpr int RUNS = 5;
    const auto there = p.head_dim > 64 ? hopper_sizes128_on_gpu() : hopper_sizes64_on_gpu();
    TimedAttention timed(there[n].implementation, p, CacheState::warm, seed);
    return 1e6 * measure(timed, RUNS).median;
#else
    return {};
#endif
}

/// Tries all sizes with a problem.
/// @return the one that is chosen, its rate, and, where it was measured, what it loses
std::string try_sizes(Program& program, const Machine& machine, std::vector<Size>& sizes,
                      const AttentionProblem& p, std::vector<double>& losses) {
    const Size* chosen = nullptr;
    double least_predicted = 0, least = 0, time_of_chosen = 0;
    for (std::size_t n = 0; n < sizes.size(); ++n) {
        Size& size = sizes[n];
        const double predicted =
            predicted_microseconds(p, machine.multiprocessors, size.tile, size.pace);
        const auto measured = measured_time(p, n, program.seed, machine.measured);
        const double time = measured.value_or(predicted);
        if (measured) size.times.push_back({p, time});
        least = n == 0 ? time : std::min(least, time);
        if (n == 0 || predicted < least_predicted)
            least_predicted = predicted, time_of_chosen = time, chosen = &size;
        program.results.extras["sizes"].push_back({{"head_dim", p.head_dim},
                                                   {"causal", p.causal},
                                                   {"batch", p.batch},
                                                   {"heads_q", p.heads_q},
                                                   {"length", p.len_q},
                                                   {"size", size.name},
                                                   {"predicted_us", predicted},
                                                   {"measured_us", number_or_null(measured)}});
    }
    losses.push_back(time_of_chosen / least - 1);
    std::string cell = fmt::format("{} {:.0f}", chosen->name, 1e-6 * p.flops() / time_of_chosen);
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
        return std::array{fmt::format("{:.1f}", pace.launch), fmt::format("{:.1f}", pace.start),
                          fmt::format("{:.3f}", pace.step),
                          pace.alone > 0 ? fmt::format("{:.2f}", pace.alone) : std::string("-")};
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
