#include <cstdint>

#include "common/cuda/clock.h"
#include "common/cuda/device_buffer.h"
#include "common/cuda/launch.cuh"

namespace fa {
namespace {

struct Elapsed {
    std::uint64_t cycles, nanoseconds;
};

__device__ std::uint64_t nanoseconds_now() {
    std::uint64_t t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
}

/// One thread that waits 100 µs, a hundred steps of the coarsest timer there is.
__global__ void count_cycles(Elapsed* result) {
    const std::uint64_t start = nanoseconds_now();
    const std::int64_t first = clock64();
    std::uint64_t now = start;
    while (now - start < 100'000) now = nanoseconds_now();
    *result = {static_cast<std::uint64_t>(clock64() - first), now - start};
}

}  // namespace

double clock_mhz(const CudaStream& stream) {
    const DeviceBuffer buffer(sizeof(Elapsed));
    launch(count_cycles, 1, 1, 0, stream.get(), buffer.as<Elapsed>());
    Elapsed elapsed{};
    FA_CUDA_CHECK(cudaMemcpyAsync(&elapsed, buffer.data(), sizeof(elapsed), cudaMemcpyDeviceToHost,
                                  stream.get()));
    stream.synchronize();
    return 1e3 * static_cast<double>(elapsed.cycles) / static_cast<double>(elapsed.nanoseconds);
}

}  // namespace fa
