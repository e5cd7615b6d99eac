#include <fmt/format.h>

#include <string>

#include "chapters/04_cuda_tiled/experiments.h"
#include "common/cost_model.h"
#include "common/text_table.h"
#ifdef FA_CUDA_ENABLED
#include <cuda_runtime_api.h>

#include "chapters/04_cuda_tiled/naive_attention_cuda.h"
#include "chapters/04_cuda_tiled/tiled_attention.h"
#include "common/cuda/timing.h"
#endif

namespace fa {
namespace {

AttentionProblem at_length(AttentionProblem p, std::int64_t length) {
    p.len_q = p.len_kv = length;
    return p;
}

#ifdef FA_CUDA_ENABLED
/// "0.98 ms", or why not.
std::string attempt(const Implementation& implementation, const AttentionProblem& p,
                    std::uint64_t seed) {
    try {
        TimedAttention timed(implementation, p, CacheState::warm, seed);
        return human_seconds(measure(timed, 3).median);
    } catch (const OutOfDeviceMemory& error) {
        return error.what();
    }
}

void show_on_gpu(Program& program, const KernelOptions& options) {
    const DeviceMemoryLimit limit(options.memory_limit);
    const auto shape = [&](std::int64_t length) { return at_length(options.shape, length); };
    struct Step {
        const Implementation* implementation;
        std::int64_t length;
        bool fits;
    };
    const auto naive_bytes =
        static_cast<double>(CUDA_NAIVE.workspace_bytes(shape(options.naive_length), {}));
    const bool naive_fits = naive_bytes <= static_cast<double>(options.memory_limit);
    constexpr std::int64_t SHORT = 512;
    for (const Step& step :
         {Step{&CUDA_NAIVE, options.naive_length, naive_fits},
          Step{&CUDA_REGISTER_TILED, options.naive_length, true}, Step{&CUDA_NAIVE, SHORT, true}}) {
        const std::string said = attempt(*step.implementation, shape(step.length), program.seed);
        fmt::print("{:<20} T={:<6} {}\n", step.implementation->name, step.length, said);
        const bool ran = said.find("out of device memory") == std::string::npos;
        program.checks.that(fmt::format("{} at T={}", step.implementation->name, step.length),
                            step.fits ? "runs" : "out of memory, in words",
                            ran ? "runs" : "out of memory", ran == step.fits);
    }
    program.checks.that("error state of the runtime afterwards", "no error",
                        cudaGetErrorString(cudaPeekAtLastError()),
                        cudaPeekAtLastError() == cudaSuccess);
}
#endif

}  // namespace

void show_out_of_memory(Program& program, const KernelOptions& options) {
    print_heading("Where S does not fit");
    const AttentionProblem p = at_length(options.shape, options.naive_length);
    const double scores = score_bytes(p, DType::f32) + score_bytes(p, p.dtype);
    fmt::print(
        "{}: the three kernels hold S in fp32 and P in {}, {},\nbeside Q, K, V and O of {}. "
        "The one kernel holds nothing.\n\n",
        describe(p), name_of(p.dtype), human_bytes(scores), human_bytes(qkvo_bytes(p)));
#ifdef FA_CUDA_ENABLED
    if (program.where() == Device::cuda) {
        fmt::print("On a GPU that pretends to have {}:\n",
                   human_bytes(static_cast<double>(options.memory_limit)));
        show_on_gpu(program, options);
        return;
    }
#endif
    static_cast<void>(program);
    TextTable table({"memory", "longest T with S in memory", "longest T without"});
    for (const double gib : {8.0, 24.0, 80.0, 141.0}) {
        const double budget = gib * 1024 * 1024 * 1024;
        const auto naive = [&](std::int64_t length) {
            const AttentionProblem q = at_length(options.shape, length);
            return qkvo_bytes(q) + score_bytes(q, DType::f32) + score_bytes(q, q.dtype);
        };
        const auto fused = [&](std::int64_t length) {
            return qkvo_bytes(at_length(options.shape, length));
        };
        table.add({fmt::format("{:.0f} GiB", gib), fmt::format("{}", largest_length(budget, naive)),
                   fmt::format("{}", largest_length(budget, fused))});
    }
    fmt::print("{}", table.str());
}

}  // namespace fa
