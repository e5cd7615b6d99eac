// Device memory that runs out: said in words, nothing left behind.

#include <string>

#include "chapters/04_cuda_tiled/naive_attention_cuda.h"
#include "tests/gpu_test.h"

namespace fa {
namespace {

/// Runs a small problem and compares with fp64.
void check_that_a_small_problem_runs(const Implementation& implementation) {
    const AttentionProblem p{.heads_q = 2,
                             .heads_kv = 2,
                             .len_q = 64,
                             .len_kv = 64,
                             .head_dim = 64,
                             .dtype = DType::bf16,
                             .causal = true};
    CHECK(error_on_gpu<BFloat16>(implementation, p) <= 0.05);
}

TEST_CASE("gpu: S that no card can hold is out of memory, in words, and the next size runs") {
    SKIP_WITHOUT_GPU();
    const AttentionProblem huge{.heads_q = 12,
                                .heads_kv = 12,
                                .len_q = 262'144,
                                .len_kv = 262'144,
                                .head_dim = 64,
                                .dtype = DType::bf16};
    const std::size_t needed = CUDA_NAIVE.workspace_bytes(huge, {});
    CHECK(needed > std::size_t{12} * 262'144 * 262'144 * 6);  // S in fp32, P in bf16
    try {
        const DeviceBuffer workspace(needed);
        FAIL("4.9 TB allocated");
    } catch (const OutOfDeviceMemory& error) {
        CHECK(error.asked() == needed);
        CHECK(error.available() > 0);
        CHECK(error.available() < needed);
        const std::string what = error.what();
        CHECK(what.find(std::to_string(needed)) != std::string::npos);
        CHECK(what.find(std::to_string(error.available())) != std::string::npos);
    }
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    for (const Implementation* implementation : gpu_implementations())
        check_that_a_small_problem_runs(*implementation);
    CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("gpu: a limit makes a large card behave like a small one") {
    SKIP_WITHOUT_GPU();
    constexpr std::size_t MIB = 1 << 20;
    const std::size_t before = device_bytes_in_use();
    {
        const DeviceMemoryLimit limit(before + 10 * MIB);
        const DeviceBuffer six(6 * MIB);
        CHECK_THROWS_AS(DeviceBuffer(5 * MIB), OutOfDeviceMemory);
        try {
            const DeviceBuffer five(5 * MIB);
        } catch (const OutOfDeviceMemory& error) {
            CHECK(error.asked() == 5 * MIB);
            CHECK(error.available() == 4 * MIB);
        }
        const DeviceBuffer four(4 * MIB);
        CHECK(device_bytes_in_use() == before + 10 * MIB);
    }
    CHECK(device_bytes_in_use() == before);
    const DeviceBuffer no_limit(11 * MIB);
    CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("gpu: buffers move, meters nest") {
    SKIP_WITHOUT_GPU();
    const std::size_t before = device_bytes_in_use();
    const DeviceMemoryMeter outer;
    {
        DeviceBuffer a(1000);
        const DeviceMemoryMeter inner;
        CHECK(inner.peak() == 0);
        {
            const DeviceBuffer b(500);
            CHECK(inner.peak() == 500);
        }
        DeviceBuffer moved = std::move(a);
        CHECK(a.data() == nullptr);
        CHECK(a.size() == 0);
        CHECK(moved.size() == 1000);
        CHECK(reinterpret_cast<std::uintptr_t>(moved.data()) % 256 == 0);
        moved = DeviceBuffer(10);
        CHECK(inner.peak() == 500);  // 1000 + 10 at one moment: less than with b
    }
    CHECK(outer.peak() == 1500);
    CHECK(device_bytes_in_use() == before);
    CHECK(DeviceBuffer(0).data() == nullptr);
}

}  // namespace
}  // namespace fa
