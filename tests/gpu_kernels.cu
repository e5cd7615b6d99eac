#include "common/cuda/launch.cuh"
#include "tests/gpu_kernels.h"

namespace fa {
namespace {

__global__ void store(float* out, float value) {
    if (blockIdx.x == 0 && threadIdx.x == 0) *out = value;
}

}  // namespace

void launch_store(float* out, float value, std::int64_t blocks, int threads,
                  std::size_t shared_bytes, cudaStream_t stream) {
    launch(store, blocks, threads, shared_bytes, stream, out, value);
}

}  // namespace fa
