// The CPU executor's barriers of Hopper, in shared memory and named, and Hopper's other
// instructions.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/executor_hopper.h"

namespace fa {
namespace {

TEST_CASE("executor: phases of a barrier order what threads do") {
    // Two threads of different warps take turns in writing one word.
    for (const Options& options :
         {Options{}, Options{.reverse_order = true}, Options{.shuffle = 7}}) {
        int last = 0;
        const auto turns = [&](bool wait) {
            run_block(
                64, 64,
                [&] {
                    if (thread() == 0) {
                        store_shared(0, 0);
                        init_barrier(8, 1);
                        init_barrier(16, 1);
                    }
                    __syncthreads();
                    if (thread() % 32 != 5) return;
                    const bool first = thread() < 32;
                    for (int i = 0; i < 10; ++i) {
                        if (wait && !(first && i == 0))
                            wait_phase(first ? 16 : 8,
                                       static_cast<unsigned>(first ? i - 1 : i) & 1);
                        store_shared(0, load_shared<int>(0) + 1);
                        arrive(first ? 8 : 16);
                    }
                    if (!first) last = load_shared<int>(0);
                },
                options);
        };
        turns(true);
        CHECK(last == 20);
        CHECK_FAULT(turns(false), "race in shared memory at byte 0");
    }
}

TEST_CASE("executor: a warp that can miss a phase is delayed until it waits for ever") {
    // Warp 1 answers every phase; warp 2 only watches, and nothing keeps warp 0 from going on.
    const auto run = [](const Options& options) {
        run_block(
            96, 16,
            [&] {
                if (thread() == 0) {
                    init_barrier(0, 1);
                    init_barrier(8, 1);
                }
                __syncthreads();
                for (unsigned i = 0; i < 20; ++i) {
                    if (thread() == 0) {
                        wait_phase(8, (i & 1) ^ 1);
                        arrive(0);
                    }
                    if (thread() >= 32) wait_phase(0, i & 1);
                    if (thread() == 32) arrive(8);
                }
            },
            options);
    };
    CHECK_NOTHROW(run({}));
    int deadlocks = 0;
    for (std::uint64_t shuffle = 1; shuffle <= 50; ++shuffle) try {
            run({.shuffle = shuffle});
        } catch (const Fault& fault) {
            ++deadlocks;
            CHECK(std::string(fault.what()).find("deadlock") == 0);
        }
    CHECK(deadlocks > 5);
}

TEST_CASE("executor: what goes wrong with barriers in shared memory is caught") {
    CHECK_FAULT(run_block(32, 64, [] { wait_phase(8, 0); }),
                "no barrier was initialised at byte 8");
    CHECK_FAULT(run_block(32, 64, [] { arrive(0); }), "no barrier was initialised at byte 0");
    CHECK_FAULT(run_block(32, 64, [] { init_barrier(4, 1); }), "not a multiple of 8");
    CHECK_FAULT(run_block(32, 64, [] { init_barrier(64, 1); }), "beyond the end");
    CHECK_FAULT(run_block(32, 64, [] { init_barrier(0, 0); }), "0 arrivals");
    CHECK_FAULT(run_block(32, 64, [] { init_barrier(0, 1); }), "a second time");
    CHECK_FAULT(with_barrier(32, [] { wait_phase(4096, 2); }), "parity 2");
    CHECK_FAULT(with_barrier(32, [] { wait_phase(4096, 0); }),
                "deadlock: no thread can go on, this one waits at the barrier at byte 4096 of "
                "shared memory for the end of a phase of parity 0: the present phase has parity 0, "
                "1 of 1 arrivals and 0 bytes are missing (block 0,0,0, thread 0,0,0)");
    CHECK_NOTHROW(with_barrier(32, [] { wait_phase(4096, 1); }));  // the phase before the first
    CHECK_FAULT(with_barrier(32,
                             [] {
                                 if (thread() < 2) arrive_expecting(4096, 64);
                             }),
                "more arrivals than the 1");
    CHECK_FAULT(with_barrier(32,
                             [] {
                                 if (thread() == 0) arrive_expecting(4096, 1 << 20);
                             }),
                "1048576 bytes");
    CHECK_FAULT(with_barrier(32, [] { load_shared<float>(4100); }),
                "ordinary access to the barrier at byte 4096");
    CHECK_FAULT(with_barrier(32,
                             [] {
                                 if (thread() == 9) store_shared(4096, 0.0f);
                             }),
                "ordinary access to the barrier at byte 4096");
    // Some wait for a phase, the others for the block.
    CHECK_FAULT(with_barrier(64,
                             [] {
                                 if (thread() == 33) wait_phase(4096, 0);
                                 __syncthreads();
                             }),
                "; thread 33 waits at the barrier at byte 4096");
    // A lane that runs ahead can miss a phase for its warp: it answers for lanes that have not
    // waited yet.
    const auto answer = [](bool together, const Options& options) {
        run_block(
            64, 16,
            [&] {
                if (thread() == 0) {
                    init_barrier(0, 1);
                    init_barrier(8, 1);
                }
                __syncthreads();
                for (unsigned i = 0; i < 20; ++i) {
                    if (thread() == 0) {
                        wait_phase(8, (i & 1) ^ 1);
                        arrive(0);
                    }
                    if (thread() < 32) continue;
                    wait_phase(0, i & 1);
                    if (together) warp_barrier();
                    if (thread() == 32) arrive(8);
                }
            },
            options);
    };
    int deadlocks = 0;
    for (std::uint64_t shuffle = 1; shuffle <= 20; ++shuffle) {
        CHECK_NOTHROW(answer(true, {.shuffle = shuffle}));
        try {
            answer(false, {.shuffle = shuffle});
        } catch (const Fault&) {
            ++deadlocks;
        }
    }
    CHECK(deadlocks > 5);
}

TEST_CASE("executor: named barriers join parts of a block") {
    for (const Options& options : {Options{}, Options{.reverse_order = true}, Options{.shuffle = 3},
                                   Options{.shuffle = 4}}) {
        // Two warps take turns; a third does not take part.
        int sum = 0;
        run_block(
            96, 4,
            [&] {
                const int warp = static_cast<int>(thread() / 32);
                if (warp == 2) return;
                if (thread() == 0) store_shared(0, 0);
                if (warp == 0) named_barrier_arrive(1, 64);
                for (int i = 0; i < 8; ++i) {
                    named_barrier_wait(2 - warp, 64);
                    if (thread() % 32 == 0) store_shared(0, load_shared<int>(0) + 1);
                    if (i < 7 || warp == 1) named_barrier_arrive(1 + warp, 64);
                }
                if (thread() == 0) sum = load_shared<int>(0);
            },
            options);
        CHECK(sum == 16);
    }
}

TEST_CASE("executor: what goes wrong with named barriers is caught") {
    const auto run = [](const std::function<void()>& kernel) { run_block(96, 64, kernel); };
    for (int id : {0, 16})
        CHECK_FAULT(run([&] { named_barrier_wait(id, 96); }),
                    fmt::format("barrier {}", id).c_str());
    for (int threads : {0, 33, 128})
        CHECK_FAULT(run([&] { named_barrier_wait(1, threads); }),
                    fmt::format("of {} threads", threads).c_str());
    CHECK_FAULT(run([] {
                    if (thread() < 64) named_barrier_wait(3, 96);
                }),
                "waits at named barrier 3, where 64 of 96 threads have arrived");
    CHECK_FAULT(run([] { named_barrier_wait(3, thread() < 32 ? 96 : 64); }),
                "of 64 threads, where others came to one of 96");
    CHECK_FAULT(run([] { named_barrier_wait(3, thread() == 5 ? 64 : 96); }), "different numbers");
    CHECK_FAULT(run([] {
                    if (thread() % 32 != 5) named_barrier_wait(3, 96);
                }),
                "");
    CHECK_FAULT(run([] {
                    if (thread() < 32) named_barrier_arrive(3, 64);
                }),
                "the block ends with 32 of 64 threads at named barrier 3");
    // Arriving orders what came before, not what comes after.
    CHECK_FAULT(run([] {
                    if (thread() < 32) named_barrier_wait(3, 64);
                    if (thread() / 32 == 1) named_barrier_arrive(3, 64);
                    if (thread() == 0) store_shared(0, 1);
                    if (thread() == 32) store_shared(0, 1);
                }),
                "race");
}

TEST_CASE("executor: shuffled orders are orders of ordinary kernels, too") {
    for (std::uint64_t shuffle = 1; shuffle <= 20; ++shuffle) {
        int sum = 0;
        const auto kernel = [&](bool barriers) {
            run_block(128, 512,
                      [&] {
                          const auto values = shared_array<int>(0, 128);
                          values[thread()] = static_cast<int>(thread());
                          for (unsigned half = 64; half > 0; half /= 2) {
                              if (barriers) __syncthreads();
                              if (thread() < half)
                                  values[thread()] = values[thread()] + values[thread() + half];
                          }
                          if (thread() == 0) sum = values[0];
                      },
                      {.shuffle = shuffle});
        };
        kernel(true);
        CHECK(sum == 127 * 64);
        CHECK_FAULT(kernel(false), "race");
    }
}

TEST_CASE("executor: a shuffled order is the same every time") {
    const auto order = [](std::uint64_t shuffle) {
        std::vector<unsigned> seen;
        run_block(256, 0,
                  [&] {
                      named_barrier_wait(1, 256);
                      seen.push_back(thread());
                  },
                  {.shuffle = shuffle});
        return seen;
    };
    CHECK(order(1) == order(1));
    CHECK(order(1) != order(2));
}

TEST_CASE("executor: registers are given in eights") {
    CHECK_FAULT(run_block(128, 0, [] { increase_registers<20>(); }), "20 registers");
    CHECK_FAULT(run_block(128, 0, [] { decrease_registers<36>(); }), "36 registers");
    CHECK_FAULT(run_block(128, 0, [] { increase_registers<264>(); }), "264 registers");
    CHECK_FAULT(run_block(32, 0,
                          [] {
                              if (thread() == 0) increase_registers<40>();
                          }),
                "divergence in a warp");
}

TEST_CASE("executor: stmatrix puts down what ldmatrix takes up") {
    std::array<std::array<std::uint32_t, 4>, 32> got{};
    run_block(32, 512, [&] {
        const std::uint32_t own = thread() * 4;
        store_matrices(16 * thread(), {own, own + 1, own + 2, own + 3});
        warp_barrier();
        std::uint32_t r[4];
        load_matrices(r, 16 * thread());
        std::copy(r, r + 4, got[thread()].begin());
    });
    for (std::uint32_t lane = 0; lane < 32; ++lane)
        for (std::uint32_t m = 0; m < 4; ++m) CHECK(got[lane][m] == 4 * lane + m);
    CHECK_FAULT(run_block(32, 512,
                          [] {
                              store_matrices(16 * thread() + 8, {0, 0, 0, 0});
                          }),
                "not aligned");
}

TEST_CASE("executor: one lane, uniform values, atomic counters, the grid and a clock") {
    std::vector<int> tickets(64 * 4, 0);
    int counter = 0;
    std::atomic<int> elected = 0, wrong = 0;
    const GlobalPointer<int> pointer(&counter, 1);
    const Counters counters = executor::run({64}, {64}, 0, [&] {
        const auto before = clock_cycles();
        if (one_lane()) {
            ++elected;
            ++tickets[static_cast<std::size_t>(atomic_add(pointer, 2))];
            global_fence();
        }
        wrong += uniform(static_cast<int>(thread())) != static_cast<int>(thread() / 32 * 32);
        wrong += blocks_in_grid() != 64;
        wrong += clock_cycles() <= before;
    });
    CHECK(elected == 2 * 64);
    CHECK(wrong == 0);
    CHECK(counter == 4 * 64);
    for (std::size_t i = 0; i < tickets.size(); ++i) CHECK(tickets[i] == (i % 2 == 0 ? 1 : 0));
    CHECK(counters.global_load_bytes == 2 * 64 * 4);
    CHECK_FAULT(run_block(32, 0, [&] { atomic_add(pointer + 1, 1); }), "elements 1…1");
}

TEST_CASE(
    "executor: a thread that sleeps lets others go first, and wakes when nobody else can go on") {
    for (const Options& options :
         {Options{}, Options{.reverse_order = true}, Options{.shuffle = 3}}) {
        std::vector<unsigned> order;  // of the warps' ends
        with_barrier(
            96,
            [&] {
                const unsigned warp = thread() / 32;
                if (warp == 1) executor::sleep(1'000'000);
                if (thread() == 64) arrive(shared_address(4096));
                wait_phase(shared_address(4096), 0);
                if (thread() % 32 == 0) order.push_back(warp);
            },
            options);
        CHECK(order.size() == 3);
        CHECK(order.back() == 1);
    }
    // A short sleep ends while another thread goes on.
    std::vector<unsigned> order;
    with_barrier(64, [&] {
        if (thread() == 0) executor::sleep(10);
        for (int turn = 0; thread() == 32 && turn < 100; ++turn) executor::sleep(0);
        if (thread() % 32 == 0) order.push_back(thread() / 32);
    });
    CHECK(order == std::vector<unsigned>{0, 1});
}

}  // namespace
}  // namespace fa
