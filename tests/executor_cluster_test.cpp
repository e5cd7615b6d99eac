// Clusters on the CPU executor: two blocks that load boxes for each other and send each other
// messages; right in every order, and with each of its mistakes caught.

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "tests/executor_hopper.h"

namespace fa {
namespace {

/// What a kernel can do wrong.
enum class Mistake {
    none,
    handed_back_to_one,   ///< a stage, to the own block only, which loads for both
    half_announced,       ///< of the bytes that two blocks load
    foreign_load,         ///< an ordinary load of the other block's memory
    foreign_wait,         ///< at the other block's barrier
    foreign_count,        ///< a message counts for a barrier of the block that sent it
    too_many_blocks,      ///< a box is loaded for more than there are
    no_such_block,        ///< an arrival in a block that is not there
    message_not_awaited,  ///< it is read when it may not have come
    message_too_early,    ///< a second one is sent while the first may still be read
    message_misplaced,
    no_first_barrier,  ///< of the cluster; only each block waits for its own threads
    no_last_barrier,
    one_stays_away,  ///< from the last barrier
};

constexpr int CLUSTER = 2, STAGES = 2, STEPS = 9, PART = 8;
constexpr std::uint32_t BOX = PART * 128;

/// What is sent: how many steps there are, and three words that only fill it up.
struct Plan {
    int steps, unused[3];
};

/// Two warps to a block. The first loads one of two boxes of every step for both blocks; the second
/// adds up all words of a step: out[block] is their sum over all steps.
void shared_steps(const TensorMap& in, GlobalPointer<std::uint32_t> out, Mistake mistake) {
    const SharedAddress stages = shared_address(0), full = stages + STAGES * CLUSTER * BOX;
    const SharedAddress empty = full + STAGES * 8, told = empty + STAGES * 8, plan = told + 16;
    const int block = block_in_cluster(), other = 1 - block;
    if (thread() == 0) {
        for (std::uint32_t s = 0; s < STAGES; ++s) {
            init_barrier(full + 8 * s, 1);
            init_barrier(empty + 8 * s, mistake == Mistake::handed_back_to_one ? 1 : CLUSTER);
        }
        init_barrier(told, 1);
        publish_barriers();
    }
    if (mistake == Mistake::no_first_barrier)
        __syncthreads();
    else
        cluster_barrier();
    std::uint32_t s = 0;
    unsigned parity = 0;
    const auto advance = [&] {
        if (++s == STAGES) s = 0, parity ^= 1;
    };
    if (thread() == 0) {
        if (block == 0) {
            const Plan x{STEPS, {}};
            const int times = mistake == Mistake::message_too_early ? 2 : 1;
            for (int time = 0; time < times; ++time)
                for (int to = 0; to < CLUSTER; ++to)
                    send(address_in_block(plan + (mistake == Mistake::message_misplaced ? 8 : 0),
                                          to),
                         x, address_in_block(told, mistake == Mistake::foreign_count ? 0 : to));
        }
        arrive_expecting(told, sizeof(Plan));
        if (mistake != Mistake::message_not_awaited) wait_phase(told, 0);
        const int steps = load_shared<Plan>(plan).steps;
        for (int step = 0; step < steps; ++step, advance()) {
            wait_phase(empty + 8 * s, parity ^ 1);
            arrive_expecting(full + 8 * s,
                             mistake == Mistake::half_announced ? BOX : CLUSTER * BOX);
            load_box_for_cluster(stages + (s * CLUSTER + static_cast<std::uint32_t>(block)) * BOX,
                                 in, full + 8 * s, 0, (step * CLUSTER + block) * PART, 0, 0,
                                 mistake == Mistake::too_many_blocks ? 7 : (1 << CLUSTER) - 1);
        }
        if (mistake == Mistake::no_such_block) arrive_in_cluster(address_in_block(empty, CLUSTER));
    } else if (thread() >= 32) {
        const unsigned lane = thread() % 32;
        std::uint32_t sum = 0;
        for (int step = 0; step < STEPS; ++step, advance()) {
            const SharedAddress barrier = full + 8 * s;
            wait_phase(
                mistake == Mistake::foreign_wait ? address_in_block(barrier, other) : barrier,
                parity);
            for (std::uint32_t word = lane; word < CLUSTER * BOX / 4; word += 32) {
                const SharedAddress from = stages + s * CLUSTER * BOX + 4 * word;
                sum += load_shared<std::uint32_t>(
                    mistake == Mistake::foreign_load ? address_in_block(from, other) : from);
            }
            warp_barrier();
            if (mistake == Mistake::handed_back_to_one ? lane == 0 : lane < CLUSTER)
                arrive_in_cluster(address_in_block(
                    empty + 8 * s,
                    mistake == Mistake::handed_back_to_one ? block : static_cast<int>(lane)));
        }
        out[block * 32 + static_cast<int>(lane)] = sum;
    }
    const bool stays_away = mistake == Mistake::one_stays_away && block == 1 && thread() >= 32;
    if (mistake != Mistake::no_last_barrier && !stays_away) cluster_barrier();
}

/// Runs shared_steps() on `clusters` clusters and counts the wrong results.
int wrong_sums(const Options& options, Mistake mistake = Mistake::none, unsigned clusters = 1) {
    constexpr std::size_t TOKENS = STEPS * CLUSTER * PART;
    alignas(16) static std::array<BFloat16, TOKENS * 64> in;
    std::uint32_t right[32] = {};
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = BFloat16(static_cast<float>(i * 7 % 200));
    for (std::size_t i = 0; i < in.size(); i += 2) {  // a swizzle moves 16 bytes within a row
        std::uint32_t word;
        std::memcpy(&word, &in[i], 4);
        const std::size_t row = i / 64, chunk = i % 64 / 8 ^ row % 8;
        right[chunk * 4 + i % 8 / 2] += word;
    }
    const TensorMap map =
        make_executor_map(std::as_const(in).data(), {64, static_cast<std::int64_t>(TOKENS), 1, 1},
                          {64, 64 * TOKENS, 64 * TOKENS}, PART);
    std::vector<std::uint32_t> out(clusters * CLUSTER * 32);
    Options launch = options;
    launch.cluster = CLUSTER;
    executor::run(
        {clusters * CLUSTER}, {64}, STAGES * CLUSTER * BOX + 64,
        [&] {
            const auto first = static_cast<std::int64_t>(blockIdx.x / CLUSTER * CLUSTER * 32);
            shared_steps(map, GlobalPointer<std::uint32_t>(out.data() + first, CLUSTER * 32),
                         mistake);
        },
        launch);
    int wrong = 0;
    for (std::size_t i = 0; i < out.size(); ++i) wrong += out[i] != right[i % 32];
    return wrong;
}

TEST_CASE("executor: the blocks of a cluster share their loads in every order") {
    for (bool reverse : {false, true})
        for (bool at_once : {false, true})
            CHECK(wrong_sums({.reverse_order = reverse, .copies_arrive_at_once = at_once}) == 0);
    for (std::uint64_t shuffle = 1; shuffle <= 50; ++shuffle)
        CHECK(wrong_sums({.shuffle = shuffle}) == 0);
    CHECK(wrong_sums({.workers = 2}, Mistake::none, 5) == 0);
}

TEST_CASE("executor: what goes wrong between the blocks of a cluster is caught") {
    const auto fault = [](Mistake mistake, const char* text, const Options& options = {}) {
        CAPTURE(static_cast<int>(mistake));
        CHECK_THROWS_WITH_AS(wrong_sums(options, mistake), doctest::Contains(text), Fault);
    };
    for (const Options& options : ORDERS) {
        CAPTURE(options.shuffle);
        fault(Mistake::handed_back_to_one, "", options);
        fault(Mistake::half_announced, "", options);
        fault(Mistake::foreign_load, "only the own is reached", options);
        fault(Mistake::foreign_wait, "only the own is reached", options);
        fault(Mistake::foreign_count, "a barrier of the block that it is sent to", options);
        fault(Mistake::too_many_blocks, "a box for blocks 111 of a cluster of 2", options);
        fault(Mistake::no_such_block, "block 2 of a cluster of 2", options);
        fault(Mistake::message_not_awaited, "", options);
        fault(Mistake::message_too_early, "", options);
        fault(Mistake::message_misplaced, "in units of 16", options);
        fault(Mistake::no_first_barrier, "barrier", options);
        fault(Mistake::no_last_barrier, "its memory", options);
        fault(Mistake::one_stays_away, "", options);
    }
    // A block's load may overtake what the other one still reads: found in every order.
    fault(Mistake::handed_back_to_one, "race");
}

TEST_CASE("executor: barriers of a block and its named ones are its own in a cluster") {
    std::array<int, 2> rounds{};
    executor::run({2}, {64}, 1024,
                  [&] {
                      const int block = block_in_cluster();
                      for (int round = 0; round <= block; ++round) {  // the second block once more
                          if (thread() == 0) store_shared(shared_address(0), round);
                          __syncthreads();
                          CHECK(load_shared<int>(shared_address(0)) == round);
                          named_barrier_wait(3, 64);
                          if (thread() == 0) ++rounds[static_cast<std::size_t>(block)];
                      }
                  },
                  {.cluster = 2});
    CHECK(rounds == std::array<int, 2>{1, 2});
}

TEST_CASE("executor: a barrier of one block orders nothing in the other") {
    const auto kernel = [](bool cluster) {
        // Block 0 tells block 1 by a barrier there; what its threads wrote is not among it.
        if (thread() == 0) {
            init_barrier(shared_address(64), 1);
            publish_barriers();
        }
        cluster_barrier();
        if (block_in_cluster() == 1 && thread() == 32) store_shared(shared_address(0), 1);
        if (cluster)
            cluster_barrier();
        else
            __syncthreads();
        if (block_in_cluster() == 0 && thread() == 0) {
            send(address_in_block(shared_address(0), 1), Plan{},
                 address_in_block(shared_address(64), 1));
        }
        if (block_in_cluster() == 1 && thread() == 0) {
            arrive_expecting(shared_address(64), sizeof(Plan));
            wait_phase(shared_address(64), 0);
        }
        cluster_barrier();
    };
    const auto run = [&](bool cluster) {
        executor::run({2}, {64}, 1024, [&] { kernel(cluster); }, {.cluster = 2});
    };
    CHECK_NOTHROW(run(true));
    CHECK_FAULT(run(false), "race");
}

TEST_CASE("executor: warpgroups and named barriers are counted within each block of a cluster") {
    const auto run = [](unsigned threads, const std::function<void()>& kernel) {
        executor::run({2}, {threads}, 1024, kernel, {.cluster = 2});
    };
    // Five warps: the second block's warpgroup begins at the sixth warp of the cluster.
    CHECK_NOTHROW(run(160, [] {
        if (thread() < 128) decrease_registers<24>();
    }));
    CHECK_FAULT(run(160,
                    [] {
                        if (thread() < 96) decrease_registers<24>();
                    }),
                "do not issue the same");
    CHECK_FAULT(run(64, [] { named_barrier_wait(1, 128); }), "whole warps of the block are meant");
}

TEST_CASE("executor: a product reads the own block's memory") {
    executor::run({2}, {128}, 1024,
                  [] {
                      const SharedAddress other =
                          address_in_block(shared_address(0), 1 - block_in_cluster());
                      CHECK_FAULT(by_rows(other), "only the own is reached");
                      CHECK_FAULT(by_columns(other, BOX), "only the own is reached");
                  },
                  {.cluster = 2});
}

TEST_CASE("executor: an impossible cluster is refused") {
    const auto run = [](unsigned blocks, unsigned cluster) {
        executor::run({blocks}, {32}, 0, [] {}, {.cluster = cluster});
    };
    CHECK_NOTHROW(run(6, 3));
    CHECK_THROWS_AS(run(5, 2), std::invalid_argument);
    CHECK_THROWS_AS(run(4, 0), std::invalid_argument);
    CHECK_NOTHROW(run(8, 8));
    CHECK_THROWS_AS(run(9, 9), std::invalid_argument);
}

}  // namespace
}  // namespace fa
