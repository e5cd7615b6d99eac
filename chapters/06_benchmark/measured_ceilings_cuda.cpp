#include "chapters/06_benchmark/measured_ceilings.h"
#include "common/cuda/check.h"
#include "common/cuda/clock.h"
#include "common/cuda/cublas.h"
#include "common/cuda/device.h"
#include "common/cuda/device_buffer.h"
#include "common/cuda/random.h"
#include "common/cuda/timing.h"

namespace fa {
namespace {

constexpr int RUNS = 10;
constexpr std::int64_t N = 8192;               // of the product
constexpr double EXPONENTIALS_PER_CLOCK = 16;  // of a multiprocessor, compute capability 7 to 9

/// The best of some replays: a ceiling is what can be reached.
double best_seconds(const CudaStream& stream, TimedGraph::LaunchOne launch) {
    TimedGraph graph(stream, std::move(launch));
    double best = graph.replay();
    for (int i = 1; i < RUNS; ++i) best = std::min(best, graph.replay());
    return best / static_cast<double>(graph.launches());
}

double copy_rate(const CudaStream& stream) {
    // Twenty times the L2 cache, or what there is.
    const std::size_t bytes = std::min(20 * gpu_properties().l2_bytes, gpu_memory().free / 4);
    const DeviceBuffer from(bytes), to(bytes);
    const double seconds = best_seconds(stream, [&](std::int64_t, cudaStream_t s) {
        FA_CUDA_CHECK(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, s));
    });
    return 2 * static_cast<double>(bytes) / seconds;
}

double product_rate(const CudaStream& stream, DType dtype) {
    const cudaDataType_t type = dtype == DType::f32    ? CUDA_R_32F
                                : dtype == DType::bf16 ? CUDA_R_16BF
                                                       : CUDA_R_16F;
    const std::size_t bytes = static_cast<std::size_t>(N * N) * size_of(dtype);
    const DeviceBuffer a(bytes), b(bytes), c(bytes);
    fill_normal_on_device(a.data(), dtype, N * N, 1, stream.get());
    fill_normal_on_device(b.data(), dtype, N * N, 2, stream.get());
    const float one = 1, zero = 0;
    const double seconds = best_seconds(stream, [&](std::int64_t, cudaStream_t s) {
        constexpr int SIZE = N;
        FA_CUBLAS_CHECK(cublasGemmEx(cublas_handle(s), CUBLAS_OP_T, CUBLAS_OP_N, SIZE, SIZE, SIZE,
                                     &one, a.data(), type, SIZE, b.data(), type, SIZE, &zero,
                                     c.data(), type, SIZE, CUBLAS_COMPUTE_32F,
                                     CUBLAS_GEMM_DEFAULT));
    });
    return 2.0 * N * N * N / seconds;
}

}  // namespace

Ceilings measure_cuda_ceilings(DType dtype) {
    set_device_memory_limit(0);  // a pretended small card has the rates of the real one
    const CudaStream stream;
    Ceilings ceilings{.name = gpu_properties().name};
    ceilings.bytes_per_s = copy_rate(stream);
    ceilings.exponentials_per_s =
        EXPONENTIALS_PER_CLOCK * gpu_properties().multiprocessors * clock_mhz(stream) * 1e6;
    ceilings.flops_per_s = product_rate(stream, dtype);
    return ceilings;
}

}  // namespace fa
