#pragma once
/// @file
/// The kernels of this chapter on the GPU.

#include "chapters/04_cuda_tiled/kernel_resources.cuh"
#include "chapters/08_tensor_cores/entries.h"
#include "common/cuda/device.h"
#include "common/cuda/launch.cuh"

namespace fa {

/// Why the GPU cannot run a problem with the kernel that a type describes (entries.h), or empty.
template <class Kernel>
std::string tensor_cores_why_unsupported(const AttentionProblem& p) {
    if (!why_no_gpu().empty()) return why_no_gpu();
    const GpuProperties& gpu = gpu_properties();
    if (std::string reason = capability_why_unsupported(gpu.compute_capability); !reason.empty())
        return reason;
    return why_unsupported_by<Kernel>(p, gpu.multiprocessors, gpu.shared_bytes_per_block);
}

/// Launches the kernel on the stream.
template <class Kernel>
void run_tensor_cores(const AttentionProblem& p, const AttentionTensors& t, std::span<std::byte>,
                      const Launch& how) {
    with_16bit_type(p.dtype, [&](auto element) {
        using T = decltype(element);
        const GpuProperties& gpu = gpu_properties();
        const auto arguments =
            arguments_for<T>(p, t, gpu.l2_bytes, [](auto* data, std::int64_t) { return data; });
        Kernel::with_config(p, arguments.chunked, gpu.multiprocessors, [&]<class Config>() {
            launch(Kernel::template function<Config, T>(), blocks_of(p, Config::BLOCK_M),
                   Config::THREADS, Config::SHARED_BYTES, static_cast<cudaStream_t>(how.stream),
                   arguments);
        });
    });
}

/// An entry of the list that runs a kernel on the GPU.
template <class Kernel>
constexpr Implementation tensor_core_entry(std::string_view name, std::string_view summary) {
    return {
        .name = name,
        .chapter = 8,
        .device = Device::cuda,
        .summary = summary,
        .why_unsupported = tensor_cores_why_unsupported<Kernel>,
        .workspace_bytes = [](const AttentionProblem&, const Launch&) { return std::size_t{0}; },
        .run = run_tensor_cores<Kernel>,
    };
}

/// What a kernel needs of a multiprocessor for a problem with dense tensors. @throws CudaError
template <class Kernel>
KernelResources tensor_core_resources(const AttentionProblem& p) {
    KernelResources r;
    with_16bit_type(p.dtype, [&](auto element) {
        using T = decltype(element);
        Kernel::with_config(p, p.head_dim % 8 == 0, gpu_properties().multiprocessors,
                            [&]<class Config>() {
                                r = resources_of<Config>(blocks_of(p, Config::BLOCK_M),
                                                         Kernel::template function<Config, T>());
                            });
    });
    return r;
}

}  // namespace fa
