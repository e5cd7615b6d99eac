// The CPU executor: what it lets a kernel do, what it catches, what it counts.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/kernel_language.h"
#include "tests/executor_block.h"

namespace fa {
namespace {

using executor::Counters;
using executor::Fault;
using executor::Options;

/// A shared array of floats from the start of the block's shared memory.
SharedPointer<float> floats(std::int64_t count) {
    return shared_array<float>(0, count);
}

int thread() {
    return static_cast<int>(threadIdx.x);
}

/// Both orders of the threads: what depends on neither is caught in both.
constexpr std::array BOTH_ORDERS{Options{.reverse_order = false}, Options{.reverse_order = true}};

#define CHECK_FAULT(call, text) CHECK_THROWS_WITH_AS(call, doctest::Contains(text), Fault)

// --- what runs -----------------------------------------------------------------------------------

TEST_CASE("executor: every thread of every block runs once, with its coordinates") {
    constexpr unsigned GX = 3, GY = 2, GZ = 2, BX = 8, BY = 4, BZ = 2;
    for (int workers : {1, 2, 5}) {
        std::vector<std::atomic<int>> seen(GX * GY * GZ * BX * BY * BZ);
        const Counters counters =
            executor::run({GX, GY, GZ}, {BX, BY, BZ}, 0,
                          [&] {
                              const auto &t = threadIdx, &b = blockIdx;
                              const unsigned block = (b.z * GY + b.y) * GX + b.x;
                              ++seen[(block * BZ + t.z) * BY * BX + t.y * BX + t.x];
                          },
                          {.workers = workers});
        for (const auto& count : seen) CHECK(count == 1);
        CHECK(counters.blocks == GX * GY * GZ);
        CHECK(counters.threads_per_block == BX * BY * BZ);
    }
}

TEST_CASE("executor: a block of the wrong size is refused") {
    for (unsigned threads : {0u, 1u, 31u, 33u, 1056u})
        CHECK_THROWS_WITH_AS(run_block(threads, 0, [] {}),
                             doctest::Contains(std::to_string(threads).c_str()),
                             std::invalid_argument);
    CHECK(run_block(1024, 0, [] {}).threads_per_block == 1024);
    CHECK(executor::run({0}, {32}, 0, [] { throw std::logic_error("no block"); }).blocks == 0);
}

TEST_CASE("executor: barriers order a reduction in shared memory") {
    for (const Options& options : BOTH_ORDERS) {
        float total = 0;
        const Counters counters = run_block(
            256, 1024,
            [&] {
                const auto values = floats(256);
                values[thread()] = static_cast<float>(thread());
                for (int half = 128; half > 0; half /= 2) {
                    __syncthreads();
                    if (thread() < half)
                        values[thread()] = values[thread()] + values[thread() + half];
                }
                if (thread() == 0) total = values[0];
            },
            options);
        CHECK(total == 255 * 256 / 2);
        CHECK(counters.barriers == 8);
    }
}

TEST_CASE("executor: shared memory holds NaN at the start of every block") {
    std::atomic<int> numbers = 0;
    executor::run({4}, {32}, 128,
                  [&] {
                      const float value = floats(32)[thread()];
                      if (value == value) ++numbers;
                      floats(32)[thread()] = 1;
                  },
                  {.workers = 1});
    CHECK(numbers == 0);
}

TEST_CASE("executor: shuffles exchange between lanes of one warp, for any mask") {
    for (const Options& options : BOTH_ORDERS) {
        std::array<std::array<float, 64>, 6> got{};
        run_block(
            64, 0,
            [&] {
                int n = 0;
                for (unsigned mask : {0u, 1u, 2u, 8u, 16u, 31u})
                    got[static_cast<std::size_t>(n++)][threadIdx.x] =
                        shuffle_xor(static_cast<float>(thread()), mask);
            },
            options);
        int n = 0;
        for (unsigned mask : {0u, 1u, 2u, 8u, 16u, 31u}) {
            for (unsigned lane = 0; lane < 64; ++lane)
                CHECK(got[static_cast<std::size_t>(n)][lane] == static_cast<float>(lane ^ mask));
            ++n;
        }
    }
}

TEST_CASE("executor: a warp's sum by shuffles, one after another without a barrier") {
    std::array<float, 32> sums{};
    run_block(32, 0, [&] {
        float x = static_cast<float>(thread());
        for (unsigned mask = 1; mask < 32; mask *= 2) x += shuffle_xor(x, mask);
        sums[threadIdx.x] = x;
    });
    for (float sum : sums) CHECK(sum == 31 * 32 / 2);
}

TEST_CASE("executor: warps may call for different warp instructions") {
    std::array<float, 64> got{};
    run_block(64, 0, [&] {
        got[threadIdx.x] = thread() < 32 ? shuffle_xor(1, 1) : shuffle_xor(shuffle_xor(2, 2), 4);
    });
    for (std::size_t i = 0; i < 64; ++i) CHECK(got[i] == (i < 32 ? 1 : 2));
}

// --- what is caught ------------------------------------------------------------------------------

TEST_CASE("executor: a barrier that some threads pass by") {
    for (const Options& options : BOTH_ORDERS) {
        CHECK_FAULT(run_block(
                        64, 0,
                        [] {
                            if (thread() != 7) __syncthreads();
                        },
                        options),
                    "divergence at a barrier");
        CHECK_FAULT(run_block(
                        64, 0,
                        [] {
                            if (thread() < 32)
                                __syncthreads();
                            else
                                __syncthreads();
                        },
                        options),
                    "divergence at a barrier");
    }
}

TEST_CASE("executor: an early return before a barrier") {
    for (const Options& options : BOTH_ORDERS)
        CHECK_FAULT(run_block(
                        64, 0,
                        [] {
                            if (thread() == 63) return;
                            __syncthreads();
                        },
                        options),
                    "has returned");
}

TEST_CASE("executor: lanes of a warp that do not meet") {
    for (const Options& options : BOTH_ORDERS) {
        CHECK_FAULT(run_block(
                        64, 0,
                        [] {
                            if (thread() % 32 != 3) warp_barrier();
                        },
                        options),
                    "divergence in a warp");
        CHECK_FAULT(run_block(
                        32, 0, [] { shuffle_xor(1, thread() < 16 ? 1 : 2); }, options),
                    "different warp instructions");
        // One lane waits for the block, the others for it.
        CHECK_FAULT(run_block(
                        32, 0,
                        [] {
                            if (thread() == 0) __syncthreads();
                            warp_barrier();
                            if (thread() != 0) __syncthreads();
                        },
                        options),
                    "divergence in a warp");
    }
}

TEST_CASE("executor: accesses outside a global array, and outside a view of it") {
    std::vector<float> memory(100, 1.0f);
    const GlobalPointer<float> all(memory.data(), 100);
    const GlobalPointer<const float> part(memory.data() + 10, 20);
    const auto in_one_thread = [](const std::function<void()>& access) {
        run_block(32, 0, [&] {
            if (thread() == 5) access();
        });
    };
    in_one_thread([&] { all[99] = part[19] + part[0]; });
    CHECK_FAULT(in_one_thread([&] { all[100] = 0; }),
                "write of elements 100…100 of a global array of 100");
    CHECK_FAULT(in_one_thread([&] { all[-1] = 0; }), "write of elements -1…-1");
    CHECK_FAULT(in_one_thread([&] { (void)static_cast<float>(part[20]); }),
                "read of elements 20…20 of a global array of 20");
    CHECK_FAULT(in_one_thread([&] { load_packed<4>(part + 18); }), "read of elements 18…21");
    CHECK_FAULT(in_one_thread([&] { (void)static_cast<float>((all + 200)[-99]); }),
                "elements 101…101");
    // Which thread it was stands in the message.
    CHECK_FAULT(in_one_thread([&] { all[100] = 0; }), "block 0,0,0, thread 5,0,0");
}

TEST_CASE("executor: accesses outside a shared array, and a shared array outside the block's") {
    const auto in_block = [](const std::function<void()>& access) { run_block(32, 512, access); };
    in_block([] { floats(128)[96 + thread()] = 0; });
    CHECK_FAULT(in_block([] { floats(64)[33 + thread()] = 0; }), "of a shared array of 64");
    CHECK_FAULT(in_block([] { floats(129); }), "shared array of 516 bytes at 0: the block has 512");
    CHECK_FAULT(in_block([] { shared_array<float>(256, 65); }), "the block has 512");
}

TEST_CASE("executor: packed accesses must be aligned to their size") {
    alignas(64) std::array<float, 32> memory{};
    const GlobalPointer<float> p(memory.data(), 32);
    const auto in_one_thread = [](const std::function<void()>& access) {
        run_block(32, 256, [&] {
            if (thread() == 0) access();
        });
    };
    in_one_thread([&] { store_packed(p + 4, load_packed<4>(p + 8)); });
    in_one_thread([&] { load_packed<2>(p + 2); });
    for (int off : {1, 2, 3})
        CHECK_FAULT(in_one_thread([&] { load_packed<4>(p + off); }),
                    "access of 16 bytes, not aligned");
    CHECK_FAULT(in_one_thread([&] { load_packed<2>(p + 1); }), "access of 8 bytes, not aligned");
    CHECK_FAULT(in_one_thread([&] { store_packed(floats(64) + 2, Packed<float, 4>{}); }),
                "not aligned");
    // Halves: four are 8 bytes.
    std::array<BFloat16, 16> halves{};
    const GlobalPointer<BFloat16> h(halves.data(), 16);
    const auto phase = reinterpret_cast<std::uintptr_t>(halves.data()) % 8 / 2;
    CHECK_FAULT(in_one_thread([&] { load_packed<4>(h + (phase == 1 ? 0 : 1)); }),
                "access of 8 bytes");
}

// --- races ---------------------------------------------------------------------------------------

/// Runs a kernel that races, in both orders; the fault must come in both.
void check_race(unsigned threads, const std::function<void()>& kernel) {
    for (const Options& options : BOTH_ORDERS)
        CHECK_FAULT(run_block(threads, 4096, kernel, options), "race in shared memory");
}
void check_no_race(unsigned threads, const std::function<void()>& kernel) {
    for (const Options& options : BOTH_ORDERS) run_block(threads, 4096, kernel, options);
}

TEST_CASE("executor: a missing barrier between write and read, read and write, write and write") {
    const auto write_then_read = [](bool barrier) {
        return [barrier] {
            floats(64)[thread()] = 1;
            if (barrier) __syncthreads();
            (void)static_cast<float>(floats(64)[63 - thread()]);
        };
    };
    check_no_race(64, write_then_read(true));
    check_race(64, write_then_read(false));

    const auto read_then_write = [](bool barrier) {
        return [barrier] {
            (void)static_cast<float>(floats(64)[63 - thread()]);
            if (barrier) __syncthreads();
            floats(64)[thread()] = 1;
        };
    };
    check_no_race(64, read_then_write(true));
    check_race(64, read_then_write(false));

    check_race(64, [] { floats(1)[0] = 1; });
    check_no_race(64, [] {
        if (thread() == 40) floats(1)[0] = 1, floats(1)[0] = 2;
    });
    check_no_race(64, [] { (void)static_cast<float>(floats(64)[0]); });  // all read one word
}

TEST_CASE("executor: a race with a reader of long ago, behind readers of other warps") {
    // Lane 0 of warp 0 reads word 0; then the lanes of the other warps do; warp 0 passes a warp
    // barrier and its lane 1 writes. Ordered behind lane 0, but not behind the other warps.
    const auto kernel = [](bool others_read) {
        return [others_read] {
            if (thread() == 0 || (others_read && thread() >= 32))
                (void)static_cast<float>(floats(1)[0]);
            warp_barrier();
            if (thread() == 1) floats(1)[0] = 1;
        };
    };
    check_no_race(128, kernel(false));
    check_race(128, kernel(true));
}

TEST_CASE("executor: a warp barrier orders a warp, not the block, and a shuffle nothing") {
    const auto neighbour = [](const std::function<void()>& between, int distance) {
        return [between, distance] {
            floats(64)[thread()] = 1;
            between();
            (void)static_cast<float>(floats(64)[thread() ^ distance]);
        };
    };
    check_no_race(64, neighbour([] { warp_barrier(); }, 1));
    check_no_race(64, neighbour([] { warp_barrier(); }, 31));
    check_race(64, neighbour([] { warp_barrier(); }, 32));
    check_race(64, neighbour([] {}, 1));
    check_race(64, neighbour([] { shuffle_xor(1, 1); }, 1));
    check_no_race(64, neighbour([] { __syncthreads(); }, 32));
}

TEST_CASE("executor: a race of any part of a packed access, and none of neighbours") {
    check_race(32, [] {
        if (thread() == 0) store_packed(floats(64) + 4, Packed<float, 4>{});
        if (thread() == 1) (void)static_cast<float>(floats(64)[7]);
    });
    check_no_race(32, [] {
        if (thread() == 0) store_packed(floats(64) + 4, Packed<float, 4>{});
        if (thread() == 1) (void)static_cast<float>(floats(64)[8]);
    });
}

// --- bank conflicts ------------------------------------------------------------------------------

/// Counts the accesses of one warp (or more).
Counters banks(const std::function<void()>& kernel, unsigned threads = 32) {
    return run_block(threads, 64 * 1024, kernel, {.count_banks = true});
}

TEST_CASE("executor: bank conflicts of scalar accesses, by stride") {
    // 32 banks of 4 bytes: a stride of s floats sends gcd(s, 32) lanes to each bank in use.
    for (int stride : {1, 2, 3, 4, 8, 16, 31, 32, 33, 64, 65}) {
        CAPTURE(stride);
        const auto ways = static_cast<std::uint64_t>(std::gcd(stride, 32));
        const Counters reads =
            banks([&] { (void)static_cast<float>(floats(4096)[thread() * stride]); });
        CHECK(reads.shared_instructions == 1);
        CHECK(reads.shared_ideal == 1);
        CHECK(reads.shared_wavefronts == ways);
        CHECK(reads.bank_conflicts() == ways - 1);
        CHECK(banks([&] { floats(4096)[thread() * stride] = 1; }).shared_wavefronts == ways);
    }
}

TEST_CASE("executor: lanes that read the same word are served at once") {
    CHECK(banks([] { (void)static_cast<float>(floats(64)[5]); }).bank_conflicts() == 0);
    // Two words of one bank, 16 lanes each.
    CHECK(banks([] {
              (void)static_cast<float>(floats(64)[thread() % 2 * 32]);
          }).shared_wavefronts == 2);
    // Two halves of one word.
    CHECK(banks([] {
              (void)to_float(shared_array<BFloat16>(0, 64)[thread()]);
          }).shared_wavefronts == 1);
}

TEST_CASE("executor: wide accesses go in half and quarter warps") {
    // 32 lanes of 16 bytes are 512 bytes: four clocks at 128 bytes a clock.
    const Counters dense = banks([] { load_packed<4>(floats(256) + 4 * thread()); });
    CHECK(dense.shared_instructions == 1);
    CHECK(dense.shared_wavefronts == 4);
    CHECK(dense.bank_conflicts() == 0);
    const Counters two = banks([] { load_packed<2>(floats(256) + 2 * thread()); });
    CHECK(two.shared_wavefronts == 2);
    CHECK(two.bank_conflicts() == 0);
    // Rows of 64 floats: the eight lanes of a quarter meet in four banks, eight deep.
    const Counters rows = banks([] { load_packed<4>(floats(4096) + 64 * thread()); });
    CHECK(rows.shared_wavefronts == 4 * 8);
    // Four floats of padding: eight different groups of four banks.
    CHECK(banks([] { load_packed<4>(floats(4096) + 68 * thread()); }).bank_conflicts() == 0);
}

// The clocks are those that an H200 takes for the same accesses.
TEST_CASE("executor: wide accesses of lanes in pairs are served two quarters or halves at once") {
    const auto wide = [](const std::function<int(int)>& at) {
        return banks([&] { load_packed<4>(floats(4096) + at(thread())); }).shared_wavefronts;
    };
    CHECK(wide([](int i) { return 68 * (i / 8); }) == 2);             // each quarter one address
    CHECK(wide([](int i) { return 4 * (i / 2); }) == 2);              // as the next lane
    CHECK(wide([](int i) { return 4 * (i / 4 * 2 + i % 2); }) == 2);  // as the next but one
    CHECK(wide([](int i) { return 4 * (i % 8); }) == 4);  // as in the next quarter: no pairs
    CHECK(wide([](int i) { return 4 * (i & ~4); }) == 4);
    CHECK(wide([](int i) { return 4 * (i % 2); }) == 2);  // as the next but one
    CHECK(wide([](int) { return 0; }) == 2);
    CHECK(wide([](int i) { return i < 16 ? 4 * (i / 2) : 4 * i; }) == 4);  // not all in pairs
    CHECK(wide([](int i) { return 32 * (i / 8); }) == 2 * 2);  // two addresses of one bank
    const auto half = [](const std::function<int(int)>& at) {
        return banks([&] { load_packed<2>(floats(4096) + at(thread())); }).shared_wavefronts;
    };
    CHECK(half([](int i) { return 2 * (i / 2); }) == 1);
    CHECK(half([](int i) { return 2 * (i % 16); }) == 2);
    CHECK(half([](int i) { return 2 * (i & ~2); }) == 2);  // pairs, but two words of a bank
    CHECK(half([](int i) { return 2 * (i / 16); }) == 1);
}

TEST_CASE("executor: every warp and instruction is counted, idle lanes are not") {
    const Counters counters = banks(
        [] {
            floats(4096)[thread()] = 1;  // four warps
            __syncthreads();
            if (thread() % 32 < 3) (void)static_cast<float>(floats(4096)[32 * thread()]);
        },
        128);
    CHECK(counters.shared_instructions == 4 + 4);
    CHECK(counters.shared_wavefronts == 4 * 1 + 4 * 3);
    CHECK(counters.bank_conflicts() == 4 * 2);
    CHECK(run_block(32, 128, [] { floats(32)[thread()] = 1; }).shared_instructions ==
          0);  // not asked
}

// --- bytes ---------------------------------------------------------------------------------------

TEST_CASE("executor: bytes to and from global memory") {
    for (int workers : {1, 3}) {
        std::vector<BFloat16> from(4 * 32 * 4 + 4);
        std::vector<float> to(4 * 32);
        const auto first = (8 - reinterpret_cast<std::uintptr_t>(from.data()) % 8) % 8 / 2;
        const GlobalPointer<const BFloat16> f(from.data() + first, 4 * 32 * 4);
        const GlobalPointer<float> t(to.data(), 4 * 32);
        const Counters counters =
            executor::run({4}, {32}, 0,
                          [&] {
                              const int i = static_cast<int>(blockIdx.x) * 32 + thread();
                              const auto piece = load_packed<4>(f + 4 * i);  // 8 bytes
                              if (thread() < 10) t[i] = to_float(piece[0]);  // 4 bytes
                          },
                          {.workers = workers});
        CHECK(counters.global_load_bytes == 4 * 32 * 8);
        CHECK(counters.global_store_bytes == 4 * 10 * 4);
    }
}

// --- when something goes wrong -------------------------------------------------------------------

TEST_CASE("executor: an exception of a kernel comes out, and what others held is freed") {
    for (int workers : {1, 4})
        for (int round = 0; round < 3; ++round) {
            std::atomic<int> alive = 0;
            struct Held {
                explicit Held(std::atomic<int>& count) : count_(count) { ++count_; }
                ~Held() { --count_; }
                std::atomic<int>& count_;
                std::vector<int> memory = std::vector<int>(100);
            };
            const auto kernel = [&] {
                const Held held(alive);
                __syncthreads();
                shuffle_xor(1, 1);
                if (blockIdx.x == 2 && thread() == 17) throw std::runtime_error("seventeen");
                __syncthreads();
            };
            CHECK_THROWS_WITH_AS(executor::run({8}, {64}, 0, kernel, {.workers = workers}),
                                 "seventeen", std::runtime_error);
            CHECK(alive == 0);
        }
}

TEST_CASE("executor: a kernel function outside of a run is refused") {
    CHECK_THROWS_WITH_AS(thread(), doctest::Contains("outside executor::run()"), std::logic_error);
}

TEST_CASE("executor: the first fault ends the run, and the next run is well") {
    CHECK_FAULT(run_block(64, 64, [] { floats(16)[thread()] = 0; }), "shared array of 16");
    std::atomic<int> threads = 0;
    run_block(64, 64, [&] { ++threads; });
    CHECK(threads == 64);
}

}  // namespace
}  // namespace fa
