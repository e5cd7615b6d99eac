#include "chapters/09_hopper/layout_probe.h"

#include "chapters/09_hopper/tensor_map.h"
#include "common/cuda/device_buffer.h"
#include "common/cuda/launch.cuh"

namespace fa {

LayoutResults probe_layout_on_gpu(std::span<const std::uint16_t> tile) {
    const DeviceBuffer elements(64 * 64 * sizeof(std::uint16_t)), memory(sizeof(LayoutResults));
    FA_CUDA_CHECK(
        cudaMemcpy(elements.data(), tile.data(), elements.size(), cudaMemcpyHostToDevice));
    const CUtensorMap map =
        tensor_map({elements.data(), {64, 64, 1, 1}, {64, 64 * 64, 64 * 64}}, 64);
    auto* results = memory.as<LayoutResults>();
    launch(probe_layout, 1, 128, PROBE_SHARED_BYTES, nullptr, map,
           reinterpret_cast<std::uint32_t*>(results->memory), &results->by_rows[0][0][0],
           &results->by_columns[0][0][0]);
    LayoutResults here;
    FA_CUDA_CHECK(cudaMemcpy(&here, memory.data(), sizeof here, cudaMemcpyDeviceToHost));
    return here;
}

}  // namespace fa
