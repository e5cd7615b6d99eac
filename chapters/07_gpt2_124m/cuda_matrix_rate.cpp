#include <algorithm>
#include <vector>

#include "chapters/07_gpt2_124m/lt_matmul.h"
#include "chapters/07_gpt2_124m/matrix_rate.h"
#include "common/cuda/check.h"
#include "common/cuda/device_buffer.h"
#include "common/cuda/timing.h"
#include "common/random.h"

namespace fa {
namespace {

/// The numbers in device memory, rounded to T.
template <class T>
DeviceBuffer on_device(const std::vector<float>& values) {
    std::vector<T> rounded(values.size());
    std::transform(values.begin(), values.end(), rounded.begin(),
                   [](float value) { return static_cast<T>(value); });
    DeviceBuffer buffer(rounded.size() * sizeof(T));
    FA_CUDA_CHECK(cudaMemcpy(buffer.data(), rounded.data(), buffer.size(), cudaMemcpyHostToDevice));
    return buffer;
}

template <class T>
double rate(const LinearWeights& layer, std::int64_t rows, std::uint64_t seed) {
    constexpr int WARM_UP = 3, RUNS = 20;
    std::vector<float> random(static_cast<std::size_t>(rows * layer.in));
    Random(seed).fill_normal(random);
    const DeviceBuffer x = on_device<T>(random), weight = on_device<T>(layer.weight),
                       bias = on_device<T>(layer.bias),
                       result(static_cast<std::size_t>(rows * layer.out) * sizeof(T));
    LtMatmul matmul(dtype_of<T>());
    const CudaStream stream;
    TimedGraph graph(stream, [&](std::int64_t, cudaStream_t on) {
        matmul.run({.rows = rows,
                    .in = layer.in,
                    .out = layer.out,
                    .layout = WeightLayout::in_out,
                    .epilogue = Epilogue::bias,
                    .x = x.data(),
                    .weight = weight.data(),
                    .bias = bias.data(),
                    .result = result.data()},
                   on);
    });
    for (int run = 0; run < WARM_UP; ++run) graph.replay();  // the clock under load
    double fastest = graph.replay();
    for (int run = 1; run < RUNS; ++run) fastest = std::min(fastest, graph.replay());
    return 2.0 * static_cast<double>(rows * layer.in * layer.out) *
           static_cast<double>(graph.launches()) / fastest;
}

}  // namespace

double measure_cuda_matrix_rate(const Gpt2& model, DType type, std::int64_t rows,
                                std::uint64_t seed) {
    return with_element_type(type, [&](auto tag) {
        return rate<decltype(tag)>(model.weights.blocks.front().expand, rows, seed);
    });
}

}  // namespace fa
