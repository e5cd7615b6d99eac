#include "chapters/04_cuda_tiled/fused_kernels.h"
#include "chapters/04_cuda_tiled/tiled_attention.h"
#include "common/cuda/device.h"
#include "common/cuda/launch.cuh"

namespace fa {
namespace {

template <FusedStep STEP>
std::string why_unsupported(const AttentionProblem& p) {
    if (!why_no_gpu().empty()) return why_no_gpu();
    return fused_why_unsupported(STEP, p, gpu_properties().shared_bytes_per_block);
}

template <FusedStep STEP>
void run(const AttentionProblem& p, const AttentionTensors& t, std::span<std::byte>,
         const Launch& how) {
    with_element_type(p.dtype, [&](auto element) {
        using T = decltype(element);
        const auto arguments =
            kernel_arguments<T>(p, t, [](auto* data, std::int64_t) { return data; });
        std::size_t need = 0;
        with_fused_config<STEP>(
            p.head_dim, gpu_properties().shared_bytes_per_block, need, [&]<class Config>() {
                launch(fused_kernel<STEP, Config, T>(), block_count<Config>(p), Config::THREADS,
                       Config::SHARED_BYTES, static_cast<cudaStream_t>(how.stream), arguments);
            });
    });
}

template <FusedStep STEP>
KernelResources resources(const AttentionProblem& p) {
    KernelResources r;
    with_element_type(p.dtype, [&](auto element) {
        std::size_t need = 0;
        with_fused_config<STEP>(
            p.head_dim, gpu_properties().shared_bytes_per_block, need, [&]<class Config>() {
                const auto kernel = fused_kernel<STEP, Config, decltype(element)>();
                cudaFuncAttributes attributes;
                FA_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
                FA_CUDA_CHECK(cudaFuncSetAttribute(kernel,
                                                   cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                   static_cast<int>(Config::SHARED_BYTES)));
                FA_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                    &r.blocks_per_multiprocessor, kernel, Config::THREADS, Config::SHARED_BYTES));
                int device = 0, most_threads = 0;
                FA_CUDA_CHECK(cudaGetDevice(&device));
                FA_CUDA_CHECK(cudaDeviceGetAttribute(
                    &most_threads, cudaDevAttrMaxThreadsPerMultiProcessor, device));
                r.blocks = block_count<Config>(p);
                r.block_m = Config::BLOCK_M;
                r.block_n = Config::BLOCK_N;
                r.threads = Config::THREADS;
                r.shared_bytes = Config::SHARED_BYTES;
                r.registers = attributes.numRegs;
                r.local_bytes = attributes.localSizeBytes;
                r.occupancy =
                    static_cast<double>(r.blocks_per_multiprocessor * r.threads) / most_threads;
            });
    });
    return r;
}

std::size_t no_workspace(const AttentionProblem&, const Launch&) {
    return 0;
}

}  // namespace

constinit const Implementation CUDA_TILED{
    .name = "cuda_tiled",
    .chapter = 4,
    .device = Device::cuda,
    .summary = "fused, tiles in shared memory, fp32 arithmetic",
    .why_unsupported = why_unsupported<FusedStep::tiled>,
    .workspace_bytes = no_workspace,
    .run = run<FusedStep::tiled>,
};

constinit const Implementation CUDA_REGISTER_TILED{
    .name = "cuda_register_tiled",
    .chapter = 4,
    .device = Device::cuda,
    .summary = "fused, register tiles, fp32 arithmetic",
    .why_unsupported = why_unsupported<FusedStep::register_tiled>,
    .workspace_bytes = no_workspace,
    .run = run<FusedStep::register_tiled>,
};

KernelResources kernel_resources(std::string_view name, const AttentionProblem& problem) {
    if (name == CUDA_TILED.name) return resources<FusedStep::tiled>(problem);
    if (name == CUDA_REGISTER_TILED.name) return resources<FusedStep::register_tiled>(problem);
    throw std::invalid_argument(std::string(name) + " is no fused kernel of chapter 4");
}

}  // namespace fa
