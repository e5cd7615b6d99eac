#include "tests/gpu_late_copy.h"

#include "common/cuda/launch.cuh"
#include "common/hopper_language.h"

namespace fa {
namespace {

// Few blocks: the grid behind must find room.
constexpr int BLOCKS = 4, THREADS = 512;

__device__ void copy_all(uint4* to, const uint4* from, std::size_t count) {
    const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += step)
        to[i] = from[i];
}

__global__ void late_copy(uint4* to, const uint4* from, std::size_t count, long long cycles) {
    let_next_grid_begin();
    wait_for_grids_before();
    const long long begin = clock64();
    while (clock64() - begin < cycles) {
    }
    copy_all(to, from, count);
}

__global__ void hasty_copy(uint4* to, const uint4* from, std::size_t count) {
    copy_all(to, from, count);
}

}  // namespace

void launch_late_copy(void* to, const void* from, std::size_t bytes, long long cycles,
                      cudaStream_t stream) {
    launch<Begin::early>(late_copy, BLOCKS, THREADS, 0, stream, static_cast<uint4*>(to),
                         static_cast<const uint4*>(from), bytes / sizeof(uint4), cycles);
}

void launch_hasty_copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
    launch<Begin::early>(hasty_copy, BLOCKS, THREADS, 0, stream, static_cast<uint4*>(to),
                         static_cast<const uint4*>(from), bytes / sizeof(uint4));
}

}  // namespace fa
