// Launches that the GPU refuses are errors in words, and leave the runtime clean.

#include <string>

#include "tests/gpu_kernels.h"
#include "tests/gpu_test.h"

namespace fa {
namespace {

/// Launches the right way, and looks that the kernel did run.
void check_that_launches_work(const CudaStream& stream) {
    const DeviceBuffer out(sizeof(float));
    launch_store(out.as<float>(), 42.0f, 1, 32, 0, stream.get());
    stream.synchronize();
    float value = 0;
    FA_CUDA_CHECK(cudaMemcpy(&value, out.data(), sizeof value, cudaMemcpyDeviceToHost));
    CHECK(value == 42.0f);
}

TEST_CASE("gpu: a launch that cannot be is an error that names call, place and reason") {
    SKIP_WITHOUT_GPU();
    const CudaStream stream;
    const DeviceBuffer out(sizeof(float));
    check_that_launches_work(stream);

    struct Wrong {
        std::int64_t blocks;
        int threads;
        std::size_t shared_bytes;
    };
    const std::size_t too_much = gpu_properties().shared_bytes_per_block + 1024;
    for (const Wrong& wrong : {Wrong{1, 2048, 0}, Wrong{0, 32, 0}, Wrong{1, 0, 0},
                               Wrong{std::int64_t{1} << 31, 32, 0}, Wrong{1, 32, too_much}}) {
        CAPTURE(wrong.blocks);
        CAPTURE(wrong.threads);
        CAPTURE(wrong.shared_bytes);
        try {
            launch_store(out.as<float>(), 1.0f, wrong.blocks, wrong.threads, wrong.shared_bytes,
                         stream.get());
            FAIL_CHECK("launched");
        } catch (const CudaError& error) {
            const std::string what = error.what();
            CHECK(error.code() != cudaSuccess);
            CHECK(what.find("launch.cuh:") != std::string::npos);
            CHECK(what.find("invalid") != std::string::npos);
        }
        CHECK(cudaPeekAtLastError() == cudaSuccess);
        check_that_launches_work(stream);
    }
}

TEST_CASE("gpu: exactly 48 KiB of shared memory, one byte less and one more") {
    SKIP_WITHOUT_GPU();
    const CudaStream stream;
    const DeviceBuffer out(sizeof(float));
    for (std::size_t shared_bytes : {49151u, 49152u, 49153u})
        CHECK_NOTHROW(launch_store(out.as<float>(), 1.0f, 1, 32, shared_bytes, stream.get()));
    stream.synchronize();
}

TEST_CASE("gpu: what the device says of itself") {
    SKIP_WITHOUT_GPU();
    const GpuProperties& gpu = gpu_properties();
    CHECK_FALSE(gpu.name.empty());
    CHECK(gpu.compute_capability >= 75);
    CHECK(gpu.multiprocessors > 0);
    CHECK(gpu.shared_bytes_per_block >= 48 * 1024);
    CHECK(gpu.shared_bytes_per_multiprocessor >= gpu.shared_bytes_per_block);
    CHECK(gpu.driver_version >= gpu.runtime_version / 1000 * 1000);  // of the same major version
    const GpuMemory memory = gpu_memory();
    CHECK(memory.free > 0);
    CHECK(memory.free <= memory.total);
}

}  // namespace
}  // namespace fa
