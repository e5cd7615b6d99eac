#pragma once
/// @file
/// The kernels of this chapter on the GPU.

#include "chapters/04_cuda_tiled/kernel_resources.cuh"
#include "chapters/09_hopper/hopper_entries.h"
#include "chapters/09_hopper/tensor_map.h"
#include "common/cuda/device.h"
#include "common/cuda/launch.cuh"

namespace fa {

/// Why the GPU cannot run a problem with the kernel that a type describes (hopper_entries.h), or
/// empty.
template <class Kernel>
std::string hopper_cuda_why_unsupported(const AttentionProblem& p) {
    if (!why_no_gpu().empty()) return why_no_gpu();
    const GpuProperties& gpu = gpu_properties();
    if (std::string reason = hopper_capability_why_unsupported(gpu.compute_capability);
        !reason.empty())
        return reason;
    return hopper_why_unsupported_by<Kernel>(p, gpu.multiprocessors);
}

inline namespace FA_KERNEL_NAMESPACE {

// [reset]
/// Sets the counter that tiles are fetched from to zero. A grid of its own and no memset: unlike
/// one, it may begin early.
inline __global__ void reset_tile_counter(int* next_tile) {
    let_next_grid_begin();
    wait_for_grids_before();
    *next_tile = 0;
}
// [reset]

}  // namespace FA_KERNEL_NAMESPACE

/// Launches a kernel with sizes that the caller chooses.
/// @param prepare called with the arguments before the launch
template <class Kernel, class Config, class T, class Prepare>
void run_hopper_config(const AttentionProblem& p, const AttentionTensors& t,
                       std::span<std::byte> workspace, cudaStream_t stream, Prepare&& prepare) {
    const GpuProperties& gpu = gpu_properties();
    auto arguments = hopper_arguments<Config, T>(
        p, t, workspace, gpu.l2_bytes, [](auto* data, std::int64_t) { return data; }, tensor_map);
    prepare(arguments);
    constexpr Begin BEGIN = begins_early<Config>() ? Begin::early : Begin::after_all_before;
    if constexpr (Config::FETCHES_TILES)
        launch<BEGIN>(reset_tile_counter, 1, 1, 0, stream, arguments.next_tile);
    launch<BEGIN, cluster_of<Config>()>(Kernel::template function<Config, T>(),
                                        hopper_blocks<Config>(p, gpu.multiprocessors),
                                        Config::THREADS, Config::SHARED_BYTES, stream, arguments);
}

/// Launches the kernel on the stream, with the sizes that its description chooses.
template <class Kernel>
void run_hopper(const AttentionProblem& p, const AttentionTensors& t,
                std::span<std::byte> workspace, const Launch& how) {
    with_config_and_type<Kernel>(p, gpu_properties().multiprocessors, [&]<class Config, class T>() {
        run_hopper_config<Kernel, Config, T>(p, t, workspace, static_cast<cudaStream_t>(how.stream),
                                             [](const auto&) {});
    });
}

/// An entry of the list that runs a kernel on the GPU.
template <class Kernel>
constexpr Implementation hopper_entry(std::string_view name, std::string_view summary) {
    return {
        .name = name,
        .chapter = 9,
        .device = Device::cuda,
        .summary = summary,
        .recomputes_rows = true,
        .why_unsupported = hopper_cuda_why_unsupported<Kernel>,
        .why_tensors_unsupported = tma_why_unsupported,
        .workspace_bytes =
            [](const AttentionProblem& p, const Launch&) {
                return hopper_workspace_bytes<Kernel>(p, gpu_properties().multiprocessors);
            },
        .run = run_hopper<Kernel>,
    };
}

/// What a kernel needs of a multiprocessor for a problem. @throws CudaError
template <class Kernel>
KernelResources hopper_resources_of(const AttentionProblem& p) {
    KernelResources r;
    const int multiprocessors = gpu_properties().multiprocessors;
    with_config_and_type<Kernel>(p, multiprocessors, [&]<class Config, class T>() {
        r = resources_of<Config>(hopper_blocks<Config>(p, multiprocessors),
                                 Kernel::template function<Config, T>());
    });
    return r;
}

}  // namespace fa
