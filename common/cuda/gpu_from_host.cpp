#include "common/cuda/gpu_from_host.h"

#include <cuda_runtime_api.h>

#include "common/cuda/check.h"
#include "common/cuda/device_buffer.h"
#include "common/cuda/stream.h"

namespace fa {
namespace {

DeviceBuffer upload(const void* data, std::size_t bytes) {
    DeviceBuffer buffer(bytes);
    if (bytes > 0) FA_CUDA_CHECK(cudaMemcpy(buffer.data(), data, bytes, cudaMemcpyHostToDevice));
    return buffer;
}

}  // namespace

void run_on_gpu_from_host(const Implementation& implementation, const AttentionProblem& problem,
                          const AttentionTensors& tensors) {
    const auto bytes_of = [](const auto& view) {
        return static_cast<std::size_t>(view.shape.count()) * size_of(view.dtype);
    };
    const DeviceBuffer q = upload(tensors.q.data, bytes_of(tensors.q));
    const DeviceBuffer k = upload(tensors.k.data, bytes_of(tensors.k));
    const DeviceBuffer v = upload(tensors.v.data, bytes_of(tensors.v));
    const DeviceBuffer o(bytes_of(tensors.o));
    const DeviceBuffer lse(
        sizeof(float) * static_cast<std::size_t>(problem.batch * problem.heads_q * problem.len_q));
    AttentionTensors on_device = tensors;
    on_device.q.data = q.data();
    on_device.k.data = k.data();
    on_device.v.data = v.data();
    on_device.o.data = o.data();
    on_device.lse.data = lse.as<float>();

    const CudaStream stream;
    const Launch launch{.stream = stream.get()};
    const DeviceBuffer workspace(implementation.workspace_bytes(problem, launch));
    attention(implementation, problem, on_device, workspace.bytes(), launch);
    stream.synchronize();
    FA_CUDA_CHECK(cudaMemcpy(tensors.o.data, o.data(), o.size(), cudaMemcpyDeviceToHost));
    FA_CUDA_CHECK(cudaMemcpy(tensors.lse.data, lse.data(), lse.size(), cudaMemcpyDeviceToHost));
}

}  // namespace fa
