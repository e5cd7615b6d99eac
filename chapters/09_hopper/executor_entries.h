#pragma once
/// @file
/// The kernels of this chapter on the CPU executor. Included only by files that the C++ compiler,
/// not nvcc, compiles.

#include <algorithm>

#include "chapters/09_hopper/hopper_entries.h"
#include "common/executor/executor.h"

namespace fa {

/// What the executor pretends to be where a choice depends on it. So few multiprocessors that
/// blocks fetch several tiles even of small problems.
struct PretendedHopper {
    static constexpr int MULTIPROCESSORS = 3;
    static constexpr std::size_t L2_BYTES = 50 << 20;
};

/// Runs a problem with sizes that the caller chooses.
/// @param prepare called with the arguments before the launch
/// @return what the executor counted @throws executor::Fault if the kernel breaks a rule
template <class Kernel, class Config, class T, class Prepare>
executor::Counters run_hopper_config_on_executor(const AttentionProblem& p,
                                                 const AttentionTensors& t,
                                                 std::span<std::byte> workspace,
                                                 const executor::Options& options,
                                                 Prepare&& prepare) {
    std::fill(workspace.begin(), workspace.end(), std::byte{});
    auto arguments = hopper_arguments<Config, T>(
        p, t, workspace, PretendedHopper::L2_BYTES,
        []<class U>(U* data, std::int64_t count) { return GlobalPointer<U>(data, count); },
        [](const BoxSource& source, int rows) {
            // Only O is stored to; what is loaded is never written through its map.
            return executor::make_executor_map(const_cast<void*>(source.data), source.extents,
                                               source.strides, rows);
        });
    prepare(arguments);
    const auto kernel = Kernel::template function<Config, T>();
    executor::Options launch = options;
    launch.cluster = cluster_of<Config>();
    return executor::run(
        {static_cast<unsigned>(hopper_blocks<Config>(p, PretendedHopper::MULTIPROCESSORS))},
        {Config::THREADS}, Config::SHARED_BYTES, [&] { kernel(arguments); }, launch);
}

/// Runs a problem with the sizes that the kernel's description chooses.
template <class Kernel>
executor::Counters run_hopper_on_executor(const AttentionProblem& p, const AttentionTensors& t,
                                          std::span<std::byte> workspace,
                                          const executor::Options& options) {
    executor::Counters counters;
    with_config_and_type<Kernel>(p, PretendedHopper::MULTIPROCESSORS, [&]<class Config, class T>() {
        counters = run_hopper_config_on_executor<Kernel, Config, T>(p, t, workspace, options,
                                                                    [](const auto&) {});
    });
    return counters;
}

/// An entry of the list that runs a kernel on the executor.
template <class Kernel>
constexpr Implementation hopper_executor_entry(std::string_view name, std::string_view summary) {
    return {
        .name = name,
        .chapter = 9,
        .device = Device::executor,
        .summary = summary,
        .recomputes_rows = true,
        .why_unsupported =
            [](const AttentionProblem& p) {
                return hopper_why_unsupported_by<Kernel>(p, PretendedHopper::MULTIPROCESSORS);
            },
        .why_tensors_unsupported = tma_why_unsupported,
        .workspace_bytes =
            [](const AttentionProblem& p, const Launch&) {
                return hopper_workspace_bytes<Kernel>(p, PretendedHopper::MULTIPROCESSORS);
            },
        .run =
            [](const AttentionProblem& p, const AttentionTensors& t, std::span<std::byte> workspace,
               const Launch& launch) {
                run_hopper_on_executor<Kernel>(p, t,
                                               workspace.first(workspace.empty() ? 0 : sizeof(int)),
                                               {.workers = launch.threads});
            },
    };
}

}  // namespace fa
