#include <vector>

#include "chapters/09_hopper/ablation_kinds.h"
#include "chapters/09_hopper/ablations.h"
#include "chapters/09_hopper/cuda_entries.cuh"
#include "common/cuda/device_buffer.h"
#include "common/cuda/timing.h"

namespace fa {

std::vector<TracedSchedule> trace_on_gpu(const AttentionProblem& problem, std::uint64_t seed,
                                         int blocks, int capacity) {
    std::vector<TracedSchedule> traced;
    const CudaStream stream;
    const DeviceAttentionData data(problem, seed, stream);
    const DeviceBuffer workspace(64);
    for_each_traced_schedule([&]<class Config>(std::string_view name) {
        const auto places = static_cast<std::size_t>(blocks * Config::WARPGROUPS);
        std::vector<TraceStamp> stamps(places * static_cast<std::size_t>(capacity));
        std::vector<int> counts(places);
        const DeviceBuffer stamps_there(stamps.size() * sizeof(TraceStamp));
        const DeviceBuffer counts_there(counts.size() * sizeof(int));
        for (int launch = 0; launch < 2; ++launch) {
            FA_CUDA_CHECK(
                cudaMemsetAsync(counts_there.data(), 0, counts_there.size(), stream.get()));
            run_hopper_config<HopperKernel, Config, BFloat16>(
                problem, data.tensors(), workspace.bytes().first(sizeof(int)), stream.get(),
                [&](HopperArguments<BFloat16>& a) {
                    a.trace = {stamps_there.as<TraceStamp>(), counts_there.as<int>(), blocks,
                               Config::WARPGROUPS, capacity};
                });
        }
        stream.synchronize();
        FA_CUDA_CHECK(cudaMemcpy(stamps.data(), stamps_there.data(), stamps_there.size(),
                                 cudaMemcpyDeviceToHost));
        FA_CUDA_CHECK(cudaMemcpy(counts.data(), counts_there.data(), counts_there.size(),
                                 cudaMemcpyDeviceToHost));
        traced.push_back(
            {std::string(name), timeline_of(stamps, counts, Config::WARPGROUPS, capacity)});
    });
    return traced;
}

}  // namespace fa
