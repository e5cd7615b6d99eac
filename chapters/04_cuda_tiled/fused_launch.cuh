#pragma once
/// @file
/// Launching a fused kernel on the GPU, and the entry of the list that does.

#include "chapters/04_cuda_tiled/fused_kernels.h"
#include "chapters/04_cuda_tiled/kernel_resources.cuh"
#include "common/cuda/device.h"
#include "common/cuda/launch.cuh"

namespace fa {

/// Why the GPU cannot run a problem with the kernel that a type describes (fused_kernels.h), or
/// empty.
template <class Kernel>
std::string cuda_why_unsupported(const AttentionProblem& p) {
    if (!why_no_gpu().empty()) return why_no_gpu();
    return fused_why_unsupported<Kernel>(p, gpu_properties().shared_bytes_per_block);
}

/// Launches the kernel on the stream.
template <class Kernel>
void run_on_gpu(const AttentionProblem& p, const AttentionTensors& t, std::span<std::byte>,
                const Launch& how) {
    with_element_type(p.dtype, [&](auto element) {
        using T = decltype(element);
        const auto arguments =
            kernel_arguments<T>(p, t, [](auto* data, std::int64_t) { return data; });
        std::size_t need = 0;
        Kernel::with_config(
            p.head_dim, gpu_properties().shared_bytes_per_block, need, [&]<class Config>() {
                launch(Kernel::template function<Config, T>(), block_count<Config>(p),
                       Config::THREADS, Config::SHARED_BYTES, static_cast<cudaStream_t>(how.stream),
                       arguments);
            });
    });
}

/// Implementation::workspace_bytes of kernels that need none.
inline std::size_t no_workspace(const AttentionProblem&, const Launch&) {
    return 0;
}

/// An entry of the list that runs a kernel on the GPU.
template <class Kernel>
constexpr Implementation cuda_entry(std::string_view name, int chapter, std::string_view summary) {
    return {
        .name = name,
        .chapter = chapter,
        .device = Device::cuda,
        .summary = summary,
        .why_unsupported = cuda_why_unsupported<Kernel>,
        .workspace_bytes = no_workspace,
        .run = run_on_gpu<Kernel>,
    };
}

/// What the kernel needs of a multiprocessor for a problem. @throws CudaError
template <class Kernel>
KernelResources kernel_resources(const AttentionProblem& p) {
    KernelResources r;
    with_element_type(p.dtype, [&](auto element) {
        std::size_t need = 0;
        Kernel::with_config(
            p.head_dim, gpu_properties().shared_bytes_per_block, need, [&]<class Config>() {
                r = resources_of<Config>(block_count<Config>(p),
                                         Kernel::template function<Config, decltype(element)>());
            });
    });
    return r;
}

}  // namespace fa
