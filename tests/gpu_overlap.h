#pragma once
/// @file
/// What tests of launches that overlap are made of: work that is run with and without
/// synchronisation, and memory that shows what was not written.

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "tests/gpu_test.h"

/// As SKIP_WITHOUT_GPU(), and also where grids cannot begin early.
#define SKIP_WITHOUT_HOPPER()                                              \
    SKIP_WITHOUT_GPU();                                                    \
    if (gpu_properties().compute_capability != 90) {                       \
        std::printf("skipped: no GPU of compute capability 9.0, but %d\n", \
                    gpu_properties().compute_capability);                  \
        return;                                                            \
    }

namespace fa {

using Bytes = std::vector<std::byte>;

/// Bytes that are NaN as bf16, fp16 and fp32.
constexpr int NOTHING_YET = 0xff;

/// Frees a recorded graph.
struct DestroyGraph {
    void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};

/// What is launched, one thing after another.
using Work = std::vector<std::function<void()>>;

/// The work, recorded.
class Recorded {
  public:
    Recorded(const CudaStream& stream, const Work& work) {
        FA_CUDA_CHECK(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
        for (const auto& step : work) step();
        cudaGraph_t graph = nullptr;
        FA_CUDA_CHECK(cudaStreamEndCapture(stream.get(), &graph));
        graph_.reset(graph);
        cudaGraphExec_t executable = nullptr;
        FA_CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
        executable_.reset(executable);
    }
    void launch(const CudaStream& stream) const {
        FA_CUDA_CHECK(cudaGraphLaunch(executable_.get(), stream.get()));
    }

  private:
    std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph> graph_;
    std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, DestroyGraph> executable_;
};

inline void run_apart(const CudaStream& stream, const Work& work) {
    for (const auto& step : work) {
        step();
        stream.synchronize();
    }
}

/// Calls `look` after each of `times` runs of the work, half of them eager and half from a graph.
/// Each kernel has run before: the first launch of one loads it, and may wait for what runs.
/// @param before puts the memory into the state that the work begins with
inline void run_overlapping(const CudaStream& stream, const Work& work, int times,
                            const std::function<void()>& before,
                            const std::function<void()>& look) {
    const Recorded recorded(stream, work);
    for (bool from_graph : {false, true}) {
        CAPTURE(from_graph);
        for (int n = 0; n < times / 2; ++n) {
            CAPTURE(n);
            before();
            stream.synchronize();
            if (from_graph)
                recorded.launch(stream);
            else
                for (const auto& step : work) step();
            stream.synchronize();
            look();
        }
    }
}

inline void fill(const DeviceBuffer& buffer, int byte, const CudaStream& stream) {
    FA_CUDA_CHECK(cudaMemsetAsync(buffer.data(), byte, buffer.size(), stream.get()));
}

inline void copy(const DeviceBuffer& to, const DeviceBuffer& from, const CudaStream& stream) {
    FA_CUDA_CHECK(cudaMemcpyAsync(to.data(), from.data(), from.size(), cudaMemcpyDeviceToDevice,
                                  stream.get()));
}

inline Bytes contents(const DeviceBuffer& buffer) {
    Bytes bytes(buffer.size());
    FA_CUDA_CHECK(cudaMemcpy(bytes.data(), buffer.data(), bytes.size(), cudaMemcpyDeviceToHost));
    return bytes;
}

/// Words of 4 bytes.
inline std::size_t words(const Bytes& bytes) {
    return bytes.size() / 4;
}

/// How many words of two equally long buffers differ.
inline std::size_t differing(const Bytes& a, const Bytes& b) {
    if (a == b) return 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i + 4 <= a.size(); i += 4) count += std::memcmp(&a[i], &b[i], 4) != 0;
    return count;
}

/// How many words still hold NOTHING_YET.
inline std::size_t unwritten(const Bytes& bytes) {
    return words(bytes) - differing(bytes, Bytes(bytes.size(), std::byte{NOTHING_YET}));
}

inline std::size_t tensor_bytes(const Shape& shape) {
    return static_cast<std::size_t>(shape.count()) * 2;  // bf16 or fp16
}

inline std::size_t lse_bytes(const AttentionProblem& p) {
    return static_cast<std::size_t>(p.batch * p.heads_q * p.len_q) * sizeof(float);
}

/// Dense tensors of two-byte elements.
inline AttentionTensors tensors_at(const AttentionProblem& p, const std::byte* q,
                                   const std::byte* k, const std::byte* v, std::byte* o,
                                   std::byte* lse) {
    const auto input = [&](const std::byte* data, const Shape& shape) {
        return ConstTensorView(data, p.dtype, shape, Strides::dense(shape));
    };
    return {.q = input(q, p.q_shape()),
            .k = input(k, p.kv_shape()),
            .v = input(v, p.kv_shape()),
            .o = TensorView(o, p.dtype, p.q_shape(), Strides::dense(p.q_shape())),
            .lse = {reinterpret_cast<float*>(lse), p.heads_q * p.len_q, p.len_q}};
}

}  // namespace fa
