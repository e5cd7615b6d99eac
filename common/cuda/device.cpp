#include "common/cuda/device.h"

#include "common/cuda/check.h"

namespace fa {
namespace {

std::string find_reason() {
    int count = 0;
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess) {
        cudaGetLastError();
        return std::string("no CUDA device: ") + cudaGetErrorString(code);
    }
    return count == 0 ? "no CUDA device" : "";
}

GpuProperties ask() {
    if (!why_no_gpu().empty()) throw std::runtime_error(why_no_gpu());
    int device = 0;
    FA_CUDA_CHECK(cudaGetDevice(&device));
    cudaDeviceProp p;
    FA_CUDA_CHECK(cudaGetDeviceProperties(&p, device));
    GpuProperties result;
    result.name = p.name;
    result.compute_capability = 10 * p.major + p.minor;
    result.multiprocessors = p.multiProcessorCount;
    result.shared_bytes_per_block = p.sharedMemPerBlockOptin;
    result.shared_bytes_per_multiprocessor = p.sharedMemPerMultiprocessor;
    result.l2_bytes = static_cast<std::size_t>(p.l2CacheSize);
    result.memory_bytes = p.totalGlobalMem;
    FA_CUDA_CHECK(cudaDriverGetVersion(&result.driver_version));
    FA_CUDA_CHECK(cudaRuntimeGetVersion(&result.runtime_version));
    return result;
}

}  // namespace

const std::string& why_no_gpu() {
    static const std::string reason = find_reason();
    return reason;
}

const GpuProperties& gpu_properties() {
    static const GpuProperties properties = ask();
    return properties;
}

GpuMemory gpu_memory() {
    GpuMemory result;
    FA_CUDA_CHECK(cudaMemGetInfo(&result.free, &result.total));
    return result;
}

}  // namespace fa
