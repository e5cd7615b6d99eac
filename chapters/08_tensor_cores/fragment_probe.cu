#include "chapters/08_tensor_cores/fragment_probe.h"
#include "common/cuda/device_buffer.h"
#include "common/cuda/launch.cuh"

namespace fa {

WarpProbe probe_on_gpu() {
    WarpProbe results{};
    const DeviceBuffer memory(sizeof results);
    launch(probe_fragments, 1, 32, 16 * 128, nullptr,
           reinterpret_cast<ProbeResults*>(memory.bytes().data()));
    FA_CUDA_CHECK(
        cudaMemcpy(results.data(), memory.bytes().data(), sizeof results, cudaMemcpyDeviceToHost));
    return results;
}

}  // namespace fa
