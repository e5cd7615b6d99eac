#define FA_BARRIER_DELAYS

#include <array>

#include "chapters/09_hopper/cuda_entries.cuh"
#include "chapters/09_hopper/delayed.h"
#include "chapters/09_hopper/hopper_host.h"
#include "chapters/09_hopper/ladder_host.h"

namespace fa {
namespace {

/// As another kernel (hopper_entries.h), and for bf16 alone: delays are the same for fp16, and each
/// type is as much to compile.
template <class Kernel>
constexpr DelayedKernel delayed_kernel(std::string_view name) {
    return {{
                .name = name,
                .chapter = 9,
                .device = Device::cuda,
                .summary = "delayed at its barriers",
                .recomputes_rows = true,
                .why_unsupported = [](const AttentionProblem& p) -> std::string {
                    if (p.dtype != DType::bf16)
                        return "the delayed kernels are compiled for bf16 alone";
                    return hopper_cuda_why_unsupported<Kernel>(p);
                },
                .why_tensors_unsupported = tma_why_unsupported,
                .workspace_bytes =
                    [](const AttentionProblem& p, const Launch&) {
                        return hopper_workspace_bytes<Kernel>(p, gpu_properties().multiprocessors);
                    },
                .run =
                    [](const AttentionProblem& p, const AttentionTensors& t,
                       std::span<std::byte> workspace, const Launch& how) {
                        Kernel::with_config(
                            p, gpu_properties().multiprocessors, [&]<class Config>() {
                                run_hopper_config<Kernel, Config, BFloat16>(
                                    p, t, workspace, static_cast<cudaStream_t>(how.stream),
                                    [](const auto&) {});
                            });
                    },
            },
            [](const AttentionProblem& p) {
                int warps = 0;
                Kernel::with_config(p, gpu_properties().multiprocessors, [&]<class Config>() {
                    warps = cluster_of<Config>() * Config::THREADS / 32;
                });
                return warps;
            }};
}

}  // namespace

std::span<const DelayedKernel> delayed_on_gpu() {
    static constexpr std::array KERNELS{
        delayed_kernel<HopperKernel>("cuda_hopper_delayed"),
        delayed_kernel<HopperLadderKernel<WgmmaStep>>("cuda_wgmma_delayed"),
        delayed_kernel<HopperLadderKernel<ProducerStep>>("cuda_producer_delayed"),
        delayed_kernel<HopperLadderKernel<OverlapStep>>("cuda_overlap_delayed"),
        delayed_kernel<HopperLadderKernel<PingPongStep>>("cuda_ping_pong_delayed"),
        delayed_kernel<HopperLadderKernel<WarpgroupsStep>>("cuda_warpgroups_delayed"),
        delayed_kernel<HopperLadderKernel<DiagonalStep>>("cuda_diagonal_delayed"),
        delayed_kernel<HopperLadderKernel<PersistentStep>>("cuda_persistent_delayed"),
        delayed_kernel<HopperLadderKernel<LazyHopperStep>>("cuda_hopper_lazy_delayed"),
        delayed_kernel<PairedKernel>("cuda_hopper_paired_delayed"),
    };
    return KERNELS;
}

void delay_on_gpu(const BarrierDelay& delay, void* stream) {
    FA_CUDA_CHECK(cudaMemcpyToSymbolAsync(barrier_delay, &delay, sizeof(delay), 0,
                                          cudaMemcpyHostToDevice,
                                          static_cast<cudaStream_t>(stream)));
}

}  // namespace fa
