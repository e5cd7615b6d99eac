#pragma once
/// @file
/// A variant of the last kernel as the program runs it.

#include "chapters/09_hopper/ablation_kinds.h"
#include "chapters/09_hopper/ablations.h"
#include "chapters/09_hopper/cuda_entries.cuh"

namespace fa {

/// The variant with these sizes and switches, for bf16.
template <class Config>
HopperVariant variant_on_gpu(std::string_view name) {
    return {name,
            [](const AttentionProblem& p, const AttentionTensors& t, std::span<std::byte> workspace,
               void* stream) {
                run_hopper_config<HopperKernel, Config, BFloat16>(
                    p, t, workspace, static_cast<cudaStream_t>(stream), [](const auto&) {});
            },
            [](const AttentionProblem& p) {
                return resources_of<Config>(
                    hopper_blocks<Config>(p, gpu_properties().multiprocessors),
                    HopperKernel::function<Config, BFloat16>());
            }};
}

}  // namespace fa
