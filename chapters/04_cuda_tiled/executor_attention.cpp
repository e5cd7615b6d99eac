#include "chapters/04_cuda_tiled/executor_attention.h"

#include <fmt/format.h>

#include "chapters/04_cuda_tiled/executor_entry.h"

namespace fa {

constinit const Implementation EXECUTOR_TILED = executor_entry<TiledKernel>(
    "executor_tiled", 4, "chapter 4's first fused kernel on the CPU executor");
constinit const Implementation EXECUTOR_REGISTER_TILED = executor_entry<RegisterTiledKernel>(
    "executor_register_tiled", 4, "the register-tiled kernel on the CPU executor");

executor::Counters run_on_executor(std::string_view name, const AttentionProblem& problem,
                                   const AttentionTensors& tensors,
                                   const executor::Options& options) {
    if (name == EXECUTOR_TILED.name) return run_on_executor<TiledKernel>(problem, tensors, options);
    if (name == EXECUTOR_REGISTER_TILED.name)
        return run_on_executor<RegisterTiledKernel>(problem, tensors, options);
    throw std::invalid_argument(fmt::format("\"{}\" does not run on the executor", name));
}

}  // namespace fa
