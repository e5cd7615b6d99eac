#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "chapters/04_cuda_tiled/experiments.h"
#include "common/kernel_language.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

constexpr int THREADS = 64;

// [broken-kernels]
/// Every thread writes one element; its neighbour in the other warp reads it. No barrier between.
__global__ void without_barrier(GlobalPointer<float> out) {
    const SharedPointer<float> tile = shared_array<float>(0, THREADS);
    const int t = static_cast<int>(threadIdx.x);
    tile[t] = 1.0f;
    out[t] = tile[THREADS - 1 - t];
}

/// Threads past the end leave at once, as in a kernel without barriers. The others wait for them.
__global__ void early_return(GlobalPointer<float> out, int count) {
    const SharedPointer<float> tile = shared_array<float>(0, THREADS);
    const int t = static_cast<int>(threadIdx.x);
    if (t >= count) return;
    tile[t] = 1.0f;
    __syncthreads();
    out[t] = tile[count - 1 - t];
}

/// The last row of a tile is loaded although the tensor ends before it.
__global__ void row_too_many(GlobalPointer<const float> rows, GlobalPointer<float> out,
                             int stride) {
    const int t = static_cast<int>(threadIdx.x);
    out[t] = rows[t * stride];
}

/// Four floats at a time from rows that begin where they like.
__global__ void misaligned(GlobalPointer<const float> rows, GlobalPointer<float> out, int stride) {
    const int t = static_cast<int>(threadIdx.x);
    out[t] = load_packed<4>(rows + t * stride)[0];
}
// [broken-kernels]

}  // namespace FA_KERNEL_NAMESPACE

namespace {

/// What the executor says to a kernel, or "nothing".
std::string said_to(const std::function<void()>& kernel) {
    try {
        executor::run({1}, {THREADS}, THREADS * sizeof(float), kernel);
    } catch (const executor::Fault& fault) {
        return fault.what();
    }
    return "nothing";
}

}  // namespace

void show_faults(Program& program) {
    print_heading("What the executor catches");
    constexpr int STRIDE = 10, ROWS = THREADS - 1;
    alignas(16) static float rows[STRIDE * THREADS];
    static float results[THREADS];
    const GlobalPointer<const float> in(rows, STRIDE * ROWS);
    const GlobalPointer<float> out(results, THREADS);
    struct Case {
        std::string name, word;
        std::function<void()> kernel;
    };
    const std::vector<Case> cases{
        {"a barrier is missing", "race", [&] { without_barrier(out); }},
        {"an early return before a barrier", "divergence", [&] { early_return(out, 40); }},
        {"a row too many", "read of elements", [&] { row_too_many(in, out, STRIDE); }},
        {"rows that are not aligned", "not aligned", [&] { misaligned(in, out, STRIDE - 1); }},
    };
    for (const Case& c : cases) {
        const std::string said = said_to(c.kernel);
        // The path of a source file says nothing to a reader, and differs from machine to machine.
        const std::size_t path = said.find(" at /");
        const std::size_t slash = said.rfind('/');
        const std::string shown =
            path == std::string::npos ? said : said.substr(0, path + 4) + said.substr(slash + 1);
        fmt::print("{}:\n    {}\n", c.name, shown);
        program.checks.that("caught: " + c.name, c.word, said.substr(0, 40),
                            said.find(c.word) != std::string::npos);
    }
}

}  // namespace fa
