#pragma once
/// @file
/// Running a fused kernel on the CPU executor, and the entry of the list that does. Included only
/// by files that the C++ compiler, not nvcc, compiles.

#include "chapters/04_cuda_tiled/fused_kernels.h"
#include "common/executor/executor.h"

namespace fa {

/// Shared memory of a block on the executor: as on a data-centre GPU of compute capability 8.0, the
/// least that all tables fit.
inline constexpr std::size_t EXECUTOR_SHARED_LIMIT = 163 * 1024;

/// Runs a problem with the kernel that a type describes (fused_kernels.h).
/// @return what the executor counted
/// @throws executor::Fault if the kernel breaks a rule
template <class Kernel>
executor::Counters run_on_executor(const AttentionProblem& p, const AttentionTensors& t,
                                   const executor::Options& options) {
    executor::Counters counters;
    with_element_type(p.dtype, [&](auto element) {
        using T = decltype(element);
        const auto arguments = kernel_arguments<T>(p, t, []<class U>(U* data, std::int64_t count) {
            return GlobalPointer<U>(data, count);
        });
        std::size_t need = 0;
        Kernel::with_config(p.head_dim, EXECUTOR_SHARED_LIMIT, need, [&]<class Config>() {
            const auto kernel = Kernel::template function<Config, T>();
            counters = executor::run(
                {static_cast<unsigned>(block_count<Config>(p))}, {Config::THREADS},
                Config::SHARED_BYTES, [&] { kernel(arguments); }, options);
        });
    });
    return counters;
}

/// An entry of the list that runs a kernel on the executor.
template <class Kernel>
constexpr Implementation executor_entry(std::string_view name, int chapter,
                                        std::string_view summary) {
    return {
        .name = name,
        .chapter = chapter,
        .device = Device::executor,
        .summary = summary,
        .why_unsupported =
            [](const AttentionProblem& p) {
                return fused_why_unsupported<Kernel>(p, EXECUTOR_SHARED_LIMIT);
            },
        .workspace_bytes = [](const AttentionProblem&, const Launch&) { return std::size_t{0}; },
        .run =
            [](const AttentionProblem& p, const AttentionTensors& t, std::span<std::byte>,
               const Launch& launch) {
                run_on_executor<Kernel>(p, t, {.workers = launch.threads});
            },
    };
}

}  // namespace fa
