#pragma once
/// @file
/// The implementations on the GPU, and dense tensors for them.

#include <cmath>
#include <vector>

#include "chapters/09_hopper/cuda_hopper.h"
#include "chapters/implementations.h"
#include "common/attention_data.h"
#include "common/cuda/device_buffer.h"
#include "common/cuda/stream.h"
#include "common/larger.h"
#include "common/reference_attention.h"

namespace fa {

/// All entries of the list that run on the GPU, and those that the list would reach with some
/// problems only: chapter 9's sizes.
inline std::vector<const Implementation*> gpu_implementations() {
    std::vector<const Implementation*> list;
    for (const Implementation& implementation : all_implementations())
        if (implementation.device == Device::cuda) list.push_back(&implementation);
#ifdef FA_HOPPER_ENABLED
    list.push_back(&CUDA_HOPPER_PAIRED);
    for (const auto& sizes : {hopper_sizes64_on_gpu(), hopper_sizes128_on_gpu()})
        for (const HopperSize& size : sizes) list.push_back(&size.implementation);
#endif
    return list;
}

/// Device copies of a problem's dense tensors, each in an allocation of its own that ends where it
/// ends; O, LSE and the workspace are left as they come.
template <class T>
class TensorsOnDevice {
  public:
    explicit TensorsOnDevice(const AttentionProblem& problem)
        : problem_(problem),
          q_(bytes(problem.q_shape())),
          k_(bytes(problem.kv_shape())),
          v_(bytes(problem.kv_shape())),
          o_(bytes(problem.q_shape())),
          lse_(sizeof(float) *
               static_cast<std::size_t>(problem.batch * problem.heads_q * problem.len_q)) {}

    void upload(const AttentionData<T>& host) {
        copy(q_.data(), host.q.data(), q_.size(), cudaMemcpyHostToDevice);
        copy(k_.data(), host.k.data(), k_.size(), cudaMemcpyHostToDevice);
        copy(v_.data(), host.v.data(), v_.size(), cudaMemcpyHostToDevice);
    }
    void download(AttentionData<T>& host) const {
        copy(host.o.data(), o_.data(), o_.size(), cudaMemcpyDeviceToHost);
        copy(host.lse.data(), lse_.data(), lse_.size(), cudaMemcpyDeviceToHost);
    }

    AttentionTensors tensors() const {
        const auto view = [&](const DeviceBuffer& buffer, const Shape& shape) {
            return TensorView(buffer.data(), problem_.dtype, shape, Strides::dense(shape));
        };
        const auto input = [&](const DeviceBuffer& buffer, const Shape& shape) {
            return ConstTensorView(buffer.data(), problem_.dtype, shape, Strides::dense(shape));
        };
        return {.q = input(q_, problem_.q_shape()),
                .k = input(k_, problem_.kv_shape()),
                .v = input(v_, problem_.kv_shape()),
                .o = view(o_, problem_.q_shape()),
                .lse = {lse_.as<float>(), problem_.heads_q * problem_.len_q, problem_.len_q}};
    }

  private:
    static std::size_t bytes(const Shape& shape) {
        return static_cast<std::size_t>(shape.count()) * sizeof(T);
    }
    static void copy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind) {
        if (size > 0) FA_CUDA_CHECK(cudaMemcpy(to, from, size, kind));
    }

    AttentionProblem problem_;
    DeviceBuffer q_, k_, v_, o_, lse_;
};

/// Runs a problem with random inputs on the GPU. @return the largest error of O against fp64, NaN
/// if one is
template <class T>
double error_on_gpu(const Implementation& implementation, const AttentionProblem& p) {
    AttentionData<T> data(p, 1);
    const ReferenceResult gold = reference_attention(p, data.tensors());
    TensorsOnDevice<T> device(p);
    device.upload(data);
    const CudaStream stream;
    const Launch launch{.stream = stream.get()};
    const DeviceBuffer workspace(implementation.workspace_bytes(p, launch));
    attention(implementation, p, device.tensors(), workspace.bytes(), launch);
    stream.synchronize();
    device.download(data);
    double largest = 0;
    for (std::size_t i = 0; i < gold.o.size(); ++i)
        largest = larger_or_nan(
            largest,
            std::fabs(static_cast<double>(static_cast<float>(data.o.data()[i])) - gold.o[i]));
    return largest;
}

}  // namespace fa
