#include "chapters/09_hopper/ablations.h"

#include "chapters/09_hopper/ablation_kinds.h"
#include "chapters/09_hopper/cuda_entries.cuh"

namespace fa {
namespace {

template <class Config>
void run(const AttentionProblem& p, const AttentionTensors& t, std::span<std::byte> workspace,
         void* stream) {
    run_hopper_config<HopperKernel, Config, BFloat16>(
        p, t, workspace, static_cast<cudaStream_t>(stream), [](const auto&) {});
}

template <class Config>
KernelResources resources(const AttentionProblem& p) {
    return resources_of<Config>(hopper_blocks<Config>(p, gpu_properties().multiprocessors),
                                HopperKernel::function<Config, BFloat16>());
}

}  // namespace

void for_each_hopper_variant_on_gpu(const std::function<void(const HopperVariant&)>& use) {
    for_each_hopper_variant([&]<class Config>(std::string_view name) {
        use({name, run<Config>, resources<Config>});
    });
}

}  // namespace fa
