#include "chapters/09_hopper/hunt.h"

#include <stdexcept>

#include "chapters/09_hopper/experiments.h"
#ifdef FA_HOPPER_ENABLED
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "chapters/09_hopper/cuda_hopper.h"
#include "chapters/09_hopper/delayed.h"
#include "chapters/09_hopper/hunt_cases.h"
#include "chapters/09_hopper/hunt_compare.h"
#include "chapters/09_hopper/hunt_rows.h"
#include "chapters/09_hopper/ladder.h"
#include "chapters/09_hopper/watchdog.h"
#include "common/cuda/random.h"
#include "common/cuda/timing.h"
#include "common/larger.h"
#include "common/stopwatch.h"
#endif

namespace fa {
#ifdef FA_HOPPER_ENABLED
namespace {

/// The kernel of a case, as the door knows it.
const Implementation& implementation_of(const HuntCase& c) {
    static constexpr std::array KERNELS{
        &CUDA_HOPPER,     &CUDA_WGMMA,    &CUDA_PRODUCER,   &CUDA_OVERLAP,     &CUDA_PING_PONG,
        &CUDA_WARPGROUPS, &CUDA_DIAGONAL, &CUDA_PERSISTENT, &CUDA_HOPPER_LAZY, &CUDA_HOPPER_PAIRED};
    static_assert(KERNELS.size() == HuntCase::PAIRED + 1);
    const auto step = static_cast<std::size_t>(c.step);
    return c.delayed ? delayed_on_gpu()[step].implementation : *KERNELS[step];
}

/// The memory of a case, made and filled: Q, K and V random, with NaN between their rows and in all
/// else.
class CaseMemory {
  public:
    CaseMemory(const HuntCase& c, std::size_t workspace_bytes, std::uint64_t seed,
               const CudaStream& stream)
        : stream_(stream),
          memory_(lay_out(c, nullptr).bytes()),
          workspace_(std::max<std::size_t>(workspace_bytes, 256)),
          laid_out_(lay_out(c, memory_.data())),
          first_(laid_out_.output_bytes),
          counter_(sizeof(unsigned long long)) {
        const std::int64_t row = laid_out_.row_elements, dim = c.problem.head_dim;
        const auto rows = static_cast<std::int64_t>(laid_out_.input_bytes) / (2 * row);
        fill_normal_on_device(memory_.data(), c.problem.dtype, rows * row, seed, stream.get());
        if (dim < row)
            FA_CUDA_CHECK(cudaMemset2DAsync(memory_.data() + 2 * dim,
                                            static_cast<std::size_t>(2 * row), 0xff,
                                            static_cast<std::size_t>(2 * (row - dim)),
                                            static_cast<std::size_t>(rows), stream.get()));
        set(workspace_, 0xff);
        set(counter_, 0);
    }

    const AttentionTensors& tensors() const { return laid_out_.tensors; }
    std::span<std::byte> workspace() const { return workspace_.bytes(); }

    /// Fills O and LSE with NaN.
    void clear(cudaStream_t stream) const {
        FA_CUDA_CHECK(cudaMemsetAsync(laid_out_.outputs, 0xff, laid_out_.output_bytes, stream));
    }
    /// What the launches that follow are compared with.
    void keep_first() const {
        FA_CUDA_CHECK(cudaMemcpyAsync(first_.data(), laid_out_.outputs, laid_out_.output_bytes,
                                      cudaMemcpyDeviceToDevice, stream_.get()));
    }
    void compare_with_first(cudaStream_t stream) const {
        count_differing_words(laid_out_.outputs, first_.data(), laid_out_.output_bytes,
                              counter_.as<unsigned long long>(), stream);
    }
    /// Words that differed so far. Waits for the stream.
    unsigned long long differing() const {
        stream_.synchronize();
        unsigned long long words = 0;
        FA_CUDA_CHECK(cudaMemcpy(&words, counter_.data(), sizeof words, cudaMemcpyDeviceToHost));
        return words;
    }

  private:
    void set(const DeviceBuffer& buffer, int byte) const {
        FA_CUDA_CHECK(cudaMemsetAsync(buffer.data(), byte, buffer.size(), stream_.get()));
    }

    const CudaStream& stream_;
    DeviceBuffer memory_, workspace_;
    HuntTensors laid_out_;
    DeviceBuffer first_, counter_;
};

void run_case(const HuntCase& c, Random& random, std::uint64_t seed, const CudaStream& stream,
              HuntBag& bag) {
    constexpr int LAUNCHES = 16, ROWS = 2;
    const AttentionProblem& p = c.problem;
    const Implementation& implementation = implementation_of(c);
    const CaseMemory memory(c, implementation.workspace_bytes(p, {}), seed, stream);
    if (c.delayed) {
        const int warps = delayed_on_gpu()[static_cast<std::size_t>(c.step)].warps(p);
        delay_on_gpu({static_cast<int>(c.delayed_warp % warps), c.delay_nanoseconds}, stream.get());
    }
    const auto launch = [&](cudaStream_t on) {
        memory.clear(on);
        attention(implementation, p, memory.tensors(), memory.workspace(), {.stream = on});
    };
    const auto launch_and_compare = [&](std::int64_t, cudaStream_t on) {
        launch(on);
        memory.compare_with_first(on);
    };
    launch(stream.get());
    memory.keep_first();
    std::int64_t launches = 1;
    if (c.in_graph) {
        TimedGraph graph(stream, launch_and_compare, LAUNCHES, /*replay_seconds=*/0);
        graph.replay();
        launches += 2 + 2 * graph.launches();  // two launches and a replay to make it ready
        bag.graph_launches += 2 * graph.launches();
    } else {
        for (; launches < LAUNCHES; ++launches) launch_and_compare(launches, stream.get());
    }
    const auto fault = [&](const std::string& what) {
        if (bag.first_fault.empty()) bag.first_fault = fmt::format("{}: {}", describe(c), what);
    };
    if (const auto words = memory.differing(); words > 0) {
        ++bag.differing;
        fault(fmt::format("{} words differ between launches", words));
    }
    for (int i = 0; i < ROWS; ++i) {
        const auto below = [&](std::int64_t bound) {
            return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound)));
        };
        const std::int64_t batch = below(p.batch), head = below(p.heads_q), query = below(p.len_q);
        const double share = row_error_over_bound(p, memory.tensors(), batch, head, query);
        ++bag.rows;
        bag.worst = larger_or_nan(bag.worst, share);
        if (share <= 1) continue;
        ++bag.wrong;
        fault(fmt::format("batch {}, head {}, query {} is wrong", batch, head, query));
    }
    ++bag.cases;
    bag.launches += launches;
    if (c.delayed) bag.delayed_launches += launches;
}

}  // namespace
#endif

void hunt(Program& program, [[maybe_unused]] double seconds) {
    if (!hopper_is_here(program))
        throw std::runtime_error("--hunt needs a GPU of compute capability 9.0");
#ifdef FA_HOPPER_ENABLED
    print_heading("Hunt, measured");
    Watchdog watchdog("ch09_hopper", std::chrono::seconds(20));
    const CudaStream stream;
    Random random(program.seed);
    HuntBag bag;
    bag.processes = 1;
    // Many short hunts would otherwise see the short lengths only.
    const auto first = static_cast<std::int64_t>(random.below(HUNT_LENGTHS));
    const Stopwatch stopwatch;
    for (std::int64_t n = first; stopwatch.seconds() < seconds; ++n) {
        const HuntCase c = hunt_case(n, random);
        watchdog.begin(describe(c));
        run_case(c, random, program.seed + static_cast<std::uint64_t>(n), stream, bag);
    }
    report_hunt(program, bag);
#endif
}

}  // namespace fa
