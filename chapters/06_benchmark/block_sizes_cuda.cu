#include <string>

#include "chapters/04_cuda_tiled/fused_kernels.h"
#include "chapters/04_cuda_tiled/tiled_attention.h"
#include "chapters/05_exp2/exp2_attention.h"
#include "chapters/05_exp2/exp2_host.h"
#include "chapters/06_benchmark/block_sizes.h"
#include "common/cuda/device.h"
#include "common/cuda/launch.cuh"

namespace fa {
namespace {

template <class Config>
std::string why_unsupported(const AttentionProblem& p) {
    if (!why_no_gpu().empty()) return why_no_gpu();
    if (p.dtype != DType::bf16) return "the block sizes are tried with bf16 only";
    if (p.head_dim > Config::HEAD_DIM)
        return "the block sizes are tried with head_dim up to " + std::to_string(Config::HEAD_DIM);
    if (Config::SHARED_BYTES > gpu_properties().shared_bytes_per_block)
        return "too much shared memory: " + std::to_string(Config::SHARED_BYTES) + " bytes";
    return {};
}

template <class Kernel, class Config>
void run(const AttentionProblem& p, const AttentionTensors& t, std::span<std::byte>,
         const Launch& how) {
    const auto arguments =
        kernel_arguments<BFloat16>(p, t, [](auto* data, std::int64_t) { return data; });
    launch(Kernel::template function<Config, BFloat16>(), block_count<Config>(p), Config::THREADS,
           Config::SHARED_BYTES, static_cast<cudaStream_t>(how.stream), arguments);
}

/// "256 threads, 128 registers, 84 KiB shared, 2 blocks a multiprocessor"
template <class Kernel, class Config>
std::string resources() {
    const auto kernel = Kernel::template function<Config, BFloat16>();
    cudaFuncAttributes attributes{};
    int resident = 0;
    FA_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
    FA_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(Config::SHARED_BYTES)));
    FA_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, Config::THREADS,
                                                                Config::SHARED_BYTES));
    std::string text = std::to_string(Config::THREADS) + " threads, " +
                       std::to_string(attributes.numRegs) + " registers, " +
                       std::to_string(Config::SHARED_BYTES / 1024) + " KiB shared, " +
                       std::to_string(resident) + " resident";
    if (attributes.localSizeBytes > 0)
        text += ", " + std::to_string(attributes.localSizeBytes) + " bytes spilled";
    return text;
}

template <class Kernel, class Config>
Candidate candidate() {
    Candidate c{.implementation = {.name = "block size",
                                   .chapter = 4,
                                   .device = Device::cuda,
                                   .summary = "a block size that is tried",
                                   .why_unsupported = why_unsupported<Config>,
                                   .workspace_bytes = [](const AttentionProblem&,
                                                         const Launch&) { return std::size_t{0}; },
                                   .run = run<Kernel, Config>},
                .tiles = {.q = Config::BLOCK_M, .kv = Config::BLOCK_N},
                .resources = {}};
    if (why_unsupported<Config>({.len_q = 1, .dtype = DType::bf16}).empty())
        c.resources = resources<Kernel, Config>();
    return c;
}

/// Marks the sizes that the list's entry takes.
Family marked(const Implementation& entry, const KernelResources& used,
              std::vector<Candidate> candidates) {
    for (Candidate& c : candidates) {
        c.implementation.name = entry.name;
        c.implementation.chapter = entry.chapter;
        c.is_default = c.tiles.q == used.block_m && c.tiles.kv == used.block_n;
    }
    return {std::string(entry.name), std::move(candidates)};
}

// [table]
/// The sizes that are tried, for both register-tiled kernels: 16 × 8 threads, 4 to 8 rows and 4 to
/// 16 keys each.
template <class Kernel>
std::vector<Candidate> register_tiled_sizes() {
    return {candidate<Kernel, RegisterTiledConfig<64, 64, 32, 16, 8>>(),
            candidate<Kernel, RegisterTiledConfig<64, 64, 64, 16, 8>>(),
            candidate<Kernel, RegisterTiledConfig<64, 128, 32, 16, 8>>(),
            candidate<Kernel, RegisterTiledConfig<64, 128, 64, 16, 8>>(),
            candidate<Kernel, RegisterTiledConfig<64, 128, 128, 16, 8>>()};
}

std::vector<Candidate> tiled_sizes() {
    return {candidate<TiledKernel, TiledConfig<64, 32, 32>>(),
            candidate<TiledKernel, TiledConfig<64, 64, 32>>(),
            candidate<TiledKernel, TiledConfig<64, 64, 64>>()};
}
// [table]

}  // namespace

std::vector<Family> cuda_block_size_families() {
    const AttentionProblem p{.len_q = 1, .len_kv = 1, .head_dim = 64, .dtype = DType::bf16};
    return {marked(CUDA_TILED, kernel_resources(CUDA_TILED.name, p), tiled_sizes()),
            marked(CUDA_REGISTER_TILED, kernel_resources(CUDA_REGISTER_TILED.name, p),
                   register_tiled_sizes<RegisterTiledKernel>()),
            marked(CUDA_EXP2, exp2_resources(p), register_tiled_sizes<Exp2Kernel>())};
}

}  // namespace fa
