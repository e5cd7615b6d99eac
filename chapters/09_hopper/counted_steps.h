#pragma once
/// @file
/// The steps of the ladder and the sizes of the last kernels on the executor, one after the other,
/// for the sections that count and compare. Included only by files that the C++ compiler, not nvcc,
/// compiles.

#include <cstddef>
#include <string_view>
#include <type_traits>

#include "chapters/09_hopper/executor_entries.h"
#include "chapters/09_hopper/experiments.h"
#include "chapters/09_hopper/hopper_host.h"
#include "chapters/09_hopper/ladder_host.h"
#include "common/attention_data.h"

namespace fa {

/// Calls `use.template operator()<Kernel, Config>(name)` for the eight steps, then for the sizes of
/// the last kernels for 64 channels.
template <class Use>
void for_each_counted_step(Use&& use) {
    for_each_hopper_step([&]<class Step>(int, std::string_view name) {
        use.template operator()<HopperLadderKernel<Step>, Step>(name);
    });
    using enum Rescale;
    const auto size = [&]<class Config>(std::type_identity<Config>, std::string_view name) {
        use.template operator()<OneSize<Config>, Config>(name);
    };
    size(std::type_identity<FewHopper64<rare>>{}, "last, few");
    size(std::type_identity<ShortHopper64<rare>>{}, "last, short");
    size(std::type_identity<WideHopper64>{}, "last, wide");
    size(std::type_identity<MediumHopper64<rare>>{}, "last, medium");
    size(std::type_identity<LongHopper64<rare>>{}, "last, long");
    size(std::type_identity<LongHopper64<lazy>>{}, "last, long, lazy");
}

/// The shape of the runs that are counted: one sequence, bf16, 64 channels.
inline AttentionProblem counted_problem(const HopperOptions& options, std::int64_t heads) {
    AttentionProblem p = options.shape;
    p.batch = 1;
    p.heads_q = p.heads_kv = heads;
    p.head_dim = 64;
    p.dtype = DType::bf16;
    p.len_q = p.len_kv = options.counted_length;
    return p;
}

/// Runs sizes on the executor.
/// @param prepare called with the arguments before the launch
template <class Kernel, class Config, class Prepare>
executor::Counters run_counted(const AttentionProblem& p, AttentionData<BFloat16>& data,
                               const executor::Options& options, Prepare&& prepare) {
    alignas(64) std::byte workspace[64];
    return run_hopper_config_on_executor<Kernel, Config, BFloat16>(
        p, data.tensors(), std::span(workspace).first(Config::FETCHES_TILES ? sizeof(int) : 0),
        options, prepare);
}
/// The same with the arguments as they are.
template <class Kernel, class Config>
executor::Counters run_counted(const AttentionProblem& p, AttentionData<BFloat16>& data,
                               const executor::Options& options) {
    return run_counted<Kernel, Config>(p, data, options, [](const auto&) {});
}

}  // namespace fa
