#include "common/cuda/device_language.cuh"
#include "common/cuda/launch.cuh"
#include "common/cuda/random.h"

namespace fa {
namespace {

constexpr int THREADS = 256;
constexpr std::int64_t BLOCKS = 4096;  // enough to fill any GPU; each thread strides over the rest

/// SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators"): the
/// n-th number of a stream, computed from n.
__device__ std::uint64_t splitmix64(std::uint64_t n) {
    n += 0x9e3779b97f4a7c15u;
    n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9u;
    n = (n ^ (n >> 27)) * 0x94d049bb133111ebu;
    return n ^ (n >> 31);
}

template <class T>
__global__ void fill_normal(T* data, std::int64_t count, std::uint64_t seed) {
    const std::uint64_t stream = splitmix64(seed);
    const std::int64_t step = std::int64_t{THREADS} * gridDim.x;
    for (std::int64_t i = std::int64_t{THREADS} * blockIdx.x + threadIdx.x; i < count; i += step) {
        const std::uint64_t bits = splitmix64(stream + static_cast<std::uint64_t>(i));
        // Two uniform numbers of 32 bits in (0, 1], so that the logarithm is finite.
        const float u = (static_cast<float>(bits >> 32) + 1.0f) * 0x1p-32f;
        const float angle = static_cast<float>(static_cast<std::uint32_t>(bits)) * 0x1p-31f;
        data[i] = from_float<T>(sqrtf(-2.0f * logf(u)) * cospif(angle));
    }
}

}  // namespace

void fill_normal_on_device(void* data, DType dtype, std::int64_t count, std::uint64_t seed,
                           cudaStream_t stream) {
    with_element_type(dtype, [&](auto element) {
        using T = decltype(element);
        launch(fill_normal<T>, BLOCKS, THREADS, 0, stream, static_cast<T*>(data), count, seed);
    });
}

}  // namespace fa
