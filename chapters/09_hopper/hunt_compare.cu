#include <algorithm>
#include <cstdint>

#include "chapters/09_hopper/hunt_compare.h"
#include "common/cuda/launch.cuh"

namespace fa {
namespace {

__global__ void compare(const std::uint32_t* here, const std::uint32_t* there, std::size_t words,
                        unsigned long long* counter) {
    unsigned long long differing = 0;
    const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words;
         i += step)
        differing += here[i] != there[i];
    if (differing > 0) atomicAdd(counter, differing);
}

}  // namespace

void count_differing_words(const std::byte* here, const std::byte* there, std::size_t bytes,
                           unsigned long long* counter, cudaStream_t stream) {
    constexpr int THREADS = 256;
    constexpr std::size_t MOST_BLOCKS = 1024;
    const std::size_t words = bytes / sizeof(std::uint32_t);
    const std::size_t blocks =
        std::clamp<std::size_t>((words + THREADS - 1) / THREADS, 1, MOST_BLOCKS);
    launch(compare, static_cast<std::int64_t>(blocks), THREADS, 0, stream,
           reinterpret_cast<const std::uint32_t*>(here),
           reinterpret_cast<const std::uint32_t*>(there), words, counter);
}

}  // namespace fa
