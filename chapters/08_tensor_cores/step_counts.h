#pragma once
/// @file
/// The steps of the ladder and the sizes of the last kernel, one after the other, for the sections
/// that describe or count them. Included only by files that the C++ compiler, not nvcc, compiles.

#include <string_view>

#include "chapters/08_tensor_cores/executor_entries.h"
#include "chapters/08_tensor_cores/experiments.h"
#include "chapters/08_tensor_cores/ladder_host.h"
#include "chapters/08_tensor_cores/tensor_core_host.h"
#include "common/attention_data.h"

namespace fa {

/// Calls `use.template operator()<Kernel, Config>(name)` for the seven steps, then for the last
/// kernel with 16 and with 32 rows to a warp.
template <class Use>
void for_each_counted(Use&& use) {
    for_each_step([&]<class Step>(int, std::string_view name) {
        use.template operator()<LadderKernel<Step>, Step>(name);
    });
    use.template operator()<TensorCoreKernel, ShortRows64>(std::string_view("last, 16 rows"));
    use.template operator()<TensorCoreKernel, LongRows64>(std::string_view("last, 32 rows"));
}

/// The shape of the runs that are counted: one sequence, two heads, bf16.
inline AttentionProblem counted_problem(const TensorCoreOptions& options) {
    AttentionProblem p = options.shape;
    p.batch = 1;
    p.heads_q = p.heads_kv = 2;
    p.head_dim = 64;
    p.len_q = p.len_kv = options.counted_length;
    return p;
}

/// Runs on the executor, shared memory watched.
template <class Kernel, class Config>
executor::Counters count(const AttentionProblem& p, std::uint64_t seed) {
    AttentionData<BFloat16> data(p, seed);
    return run_config_on_executor<Kernel, Config, BFloat16>(p, data.tensors(),
                                                            {.count_banks = true});
}

}  // namespace fa
