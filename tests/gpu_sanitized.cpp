/// @file
/// Runs every implementation on the GPU, without those whose name begins as an argument does, on
/// small awkward problems, for compute-sanitizer to watch: each tensor is an allocation of its own
/// that ends where it ends, and O, LSE and the workspace hold nothing before. Prints a line for
/// each run; exit status 1 if a result is wrong.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <vector>

#include "common/cuda/device.h"
#include "tests/gpu_tensors.h"

namespace {

using namespace fa;

constexpr AttentionProblem PROBLEMS[] = {
    {.heads_q = 2, .heads_kv = 1, .len_q = 97, .len_kv = 161, .dtype = DType::bf16, .causal = true},
    {.batch = 2, .len_q = 130, .len_kv = 65, .dtype = DType::f32, .causal = true},
    {.len_q = 65, .len_kv = 33, .head_dim = 33, .dtype = DType::f16},
    {.heads_q = 3, .heads_kv = 3, .len_q = 40, .len_kv = 70, .head_dim = 40, .dtype = DType::bf16},
    {.len_q = 70, .len_kv = 70, .head_dim = 128, .dtype = DType::bf16, .causal = true},
    {.len_q = 33, .len_kv = 40, .head_dim = 256, .dtype = DType::f16, .causal = true},
    {.len_q = 1, .len_kv = 129, .dtype = DType::bf16, .causal = true},
    {.len_q = 9, .len_kv = 0, .dtype = DType::bf16},
};

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string_view> without(argv + 1, argv + argc);
    if (!why_no_gpu().empty()) {
        fmt::print("skipped: {}\n", why_no_gpu());
        return 0;
    }
    int wrong = 0, runs = 0;
    for (const Implementation* implementation : gpu_implementations()) {
        if (std::ranges::any_of(without, [&](std::string_view name) {
                return implementation->name.starts_with(name);
            }))
            continue;
        for (const AttentionProblem& p : PROBLEMS) {
            if (const std::string reason = implementation->why_unsupported(p); !reason.empty()) {
                fmt::print("{}: {}: refused: {}\n", implementation->name, describe(p), reason);
                continue;
            }
            double error = 0;
            try {
                error = with_element_type(p.dtype, [&](auto element) {
                    return error_on_gpu<decltype(element)>(*implementation, p);
                });
            } catch (const Unsupported& reason) {  // its tensors, and not the problem
                fmt::print("{}: refused: {}\n", describe(p), reason.what());
                continue;
            }
            fmt::print("{}: {}: largest error {:.2e}\n", implementation->name, describe(p), error);
            ++runs;
            std::fflush(stdout);  // the next run may end the program
            if (!(error <= 0.05)) ++wrong;
        }
    }
    fmt::print("{} runs, {} wrong\n", runs, wrong);
    return wrong == 0 && runs > 0 ? 0 : 1;
}
