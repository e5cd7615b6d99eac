#include "chapters/04_cuda_tiled/executor_attention.h"

#include <fmt/format.h>

#include "chapters/04_cuda_tiled/fused_kernels.h"

namespace fa {
namespace {

/// As on a data-centre GPU of compute capability 8.0, the least that all tables fit.
constexpr std::size_t SHARED_LIMIT = 163 * 1024;

template <FusedStep STEP>
executor::Counters run(const AttentionProblem& p, const AttentionTensors& t,
                       const executor::Options& options) {
    executor::Counters counters;
    with_element_type(p.dtype, [&](auto element) {
        using T = decltype(element);
        const auto arguments = kernel_arguments<T>(p, t, []<class U>(U* data, std::int64_t count) {
            return GlobalPointer<U>(data, count);
        });
        std::size_t need = 0;
        with_fused_config<STEP>(p.head_dim, SHARED_LIMIT, need, [&]<class Config>() {
            const auto kernel = fused_kernel<STEP, Config, T>();
            counters = executor::run(
                {static_cast<unsigned>(block_count<Config>(p))}, {Config::THREADS},
                Config::SHARED_BYTES, [&] { kernel(arguments); }, options);
        });
    });
    return counters;
}

template <FusedStep STEP>
constexpr Implementation entry(std::string_view name, int chapter, std::string_view summary) {
    return {
        .name = name,
        .chapter = chapter,
        .device = Device::executor,
        .summary = summary,
        .why_unsupported =
            [](const AttentionProblem& p) { return fused_why_unsupported(STEP, p, SHARED_LIMIT); },
        .workspace_bytes = [](const AttentionProblem&, const Launch&) { return std::size_t{0}; },
        .run = [](const AttentionProblem& p, const AttentionTensors& t, std::span<std::byte>,
                  const Launch& launch) { run<STEP>(p, t, {.workers = launch.threads}); },
    };
}

}  // namespace

constinit const Implementation EXECUTOR_TILED = entry<FusedStep::tiled>(
    "executor_tiled", 4, "chapter 4's first fused kernel on the CPU executor");
constinit const Implementation EXECUTOR_REGISTER_TILED = entry<FusedStep::register_tiled>(
    "executor_register_tiled", 4, "the register-tiled kernel on the CPU executor");

executor::Counters run_on_executor(std::string_view name, const AttentionProblem& problem,
                                   const AttentionTensors& tensors,
                                   const executor::Options& options) {
    if (name == EXECUTOR_TILED.name) return run<FusedStep::tiled>(problem, tensors, options);
    if (name == EXECUTOR_REGISTER_TILED.name)
        return run<FusedStep::register_tiled>(problem, tensors, options);
    throw std::invalid_argument(fmt::format("\"{}\" does not run on the executor", name));
}

}  // namespace fa
