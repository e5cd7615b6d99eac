#pragma once
/// @file
/// The kernels of this chapter on the CPU executor. Included only by files that the C++ compiler,
/// not nvcc, compiles.

#include "chapters/08_tensor_cores/entries.h"
#include "common/executor/executor.h"

namespace fa {

/// What the executor pretends to be where a choice depends on it: a GPU with so many
/// multiprocessors, so much shared memory for a block and so large an L2 cache.
struct PretendedGpu {
    static constexpr int MULTIPROCESSORS = 132;
    static constexpr std::size_t SHARED_LIMIT = 99 * 1024;  ///< of compute capability 8.6 and 8.9
    static constexpr std::size_t L2_BYTES = 50 << 20;
};

/// Runs a problem with sizes that the caller chooses.
/// @return what the executor counted @throws executor::Fault if the kernel breaks a rule
template <class Kernel, class Config, class T>
executor::Counters run_config_on_executor(const AttentionProblem& p, const AttentionTensors& t,
                                          const executor::Options& options,
                                          std::size_t l2_bytes = PretendedGpu::L2_BYTES) {
    const auto arguments = arguments_for<T>(
        p, t, l2_bytes,
        []<class U>(U* data, std::int64_t count) { return GlobalPointer<U>(data, count); });
    const auto kernel = Kernel::template function<Config, T>();
    return executor::run(
        {static_cast<unsigned>(blocks_of(p, Config::BLOCK_M))}, {Config::THREADS},
        Config::SHARED_BYTES, [&] { kernel(arguments); }, options);
}

/// Runs a problem with the sizes that the kernel's description chooses.
template <class Kernel>
executor::Counters run_tensor_cores_on_executor(const AttentionProblem& p,
                                                const AttentionTensors& t,
                                                const executor::Options& options) {
    executor::Counters counters;
    with_16bit_type(p.dtype, [&](auto element) {
        Kernel::with_config(
            p, rows_are_chunked(p, t), PretendedGpu::MULTIPROCESSORS, [&]<class Config>() {
                counters = run_config_on_executor<Kernel, Config, decltype(element)>(p, t, options);
            });
    });
    return counters;
}

/// An entry of the list that runs a kernel on the executor.
template <class Kernel>
constexpr Implementation tensor_core_executor_entry(std::string_view name,
                                                    std::string_view summary) {
    return {
        .name = name,
        .chapter = 8,
        .device = Device::executor,
        .summary = summary,
        .why_unsupported =
            [](const AttentionProblem& p) {
                return why_unsupported_by<Kernel>(p, PretendedGpu::MULTIPROCESSORS,
                                                  PretendedGpu::SHARED_LIMIT);
            },
        .workspace_bytes = [](const AttentionProblem&, const Launch&) { return std::size_t{0}; },
        .run =
            [](const AttentionProblem& p, const AttentionTensors& t, std::span<std::byte>,
               const Launch& launch) {
                run_tensor_cores_on_executor<Kernel>(p, t, {.workers = launch.threads});
            },
    };
}

}  // namespace fa
