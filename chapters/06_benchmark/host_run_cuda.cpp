#include "chapters/06_benchmark/host_run.h"
#include "common/cuda/check.h"
#include "common/cuda/device_buffer.h"

namespace fa {
namespace {

std::size_t bytes_of(const Shape& shape, DType dtype) {
    return static_cast<std::size_t>(shape.count()) * size_of(dtype);
}

}  // namespace

void run_on_host_data_cuda(const Implementation& implementation, const AttentionProblem& problem,
                           const AttentionTensors& tensors) {
    if (const std::string reason = implementation.why_unsupported(problem); !reason.empty())
        throw Unsupported(reason);
    const auto input = [](const ConstTensorView& host) {
        DeviceBuffer buffer(bytes_of(host.shape, host.dtype));
        FA_CUDA_CHECK(cudaMemcpy(buffer.data(), host.data, buffer.size(), cudaMemcpyHostToDevice));
        return buffer;
    };
    const DeviceBuffer q = input(tensors.q), k = input(tensors.k), v = input(tensors.v);
    const DeviceBuffer o(bytes_of(tensors.o.shape, tensors.o.dtype));
    const Shape rows = problem.q_shape();
    const DeviceBuffer lse(static_cast<std::size_t>(rows.count() / rows.dim) * sizeof(float));
    const DeviceBuffer workspace(implementation.workspace_bytes(problem, {}));

    AttentionTensors on_device = tensors;
    on_device.q.data = q.data();
    on_device.k.data = k.data();
    on_device.v.data = v.data();
    on_device.o.data = o.data();
    on_device.lse = {lse.as<float>(), rows.heads * rows.tokens, rows.tokens};
    attention(implementation, problem, on_device, workspace.bytes());
    // The default stream: the copy waits for the kernels.
    FA_CUDA_CHECK(cudaMemcpy(tensors.o.data, o.data(), o.size(), cudaMemcpyDeviceToHost));
    if (tensors.lse.data)
        FA_CUDA_CHECK(cudaMemcpy(tensors.lse.data, lse.data(), lse.size(), cudaMemcpyDeviceToHost));
}

}  // namespace fa
