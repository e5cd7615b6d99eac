#include "chapters/08_tensor_cores/ablations.h"

#include "chapters/08_tensor_cores/ablation_kinds.h"
#include "chapters/08_tensor_cores/cuda_entries.cuh"

namespace fa {
namespace {

template <class Config>
void run(const AttentionProblem& p, const AttentionTensors& t, void* stream) {
    const GpuProperties& gpu = gpu_properties();
    const auto arguments =
        arguments_for<BFloat16>(p, t, gpu.l2_bytes, [](auto* data, std::int64_t) { return data; });
    launch(TensorCoreKernel::function<Config, BFloat16>(), blocks_of(p, Config::BLOCK_M),
           Config::THREADS, Config::SHARED_BYTES, static_cast<cudaStream_t>(stream), arguments);
}

template <class Config>
KernelResources resources(const AttentionProblem& p) {
    return resources_of<Config>(blocks_of(p, Config::BLOCK_M),
                                TensorCoreKernel::function<Config, BFloat16>());
}

}  // namespace

void for_each_ablation(const std::function<void(const Ablation&)>& use) {
    for_each_ablated([&]<class Config>(std::string_view name) {
        use({name, run<Config>, resources<Config>});
    });
}

}  // namespace fa
