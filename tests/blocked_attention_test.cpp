#include "chapters/03_blocked_attention/blocked_attention.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "chapters/01_memory_accounting/naive_attention.h"
#include "chapters/03_blocked_attention/schedule_trace.h"
#include "chapters/03_blocked_attention/three_pass_attention.h"
#include "chapters/03_blocked_attention/traffic.h"
#include "common/aligned_buffer.h"
#include "common/attention_data.h"
#include "common/larger.h"
#include "common/random.h"
#include "common/reference_attention.h"

namespace fa {
namespace {

constexpr Schedule SCHEDULES[] = {Schedule::three_pass, Schedule::kv_outer, Schedule::q_outer};

AttentionProblem square(std::int64_t length, std::int64_t dim, bool causal) {
    return {.len_q = length, .len_kv = length, .head_dim = dim, .causal = causal};
}

/// Largest |a − b|; NaN if any element of either is NaN.
double largest_difference(const std::vector<float>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double difference = a[i] == b[i] ? 0 : std::abs(a[i] - b[i]);
        largest = larger_or_nan(largest, difference);
    }
    return largest;
}

/// Runs the schedule with outputs that hold garbage before, and checks them against fp64.
void check_against_reference(Schedule schedule, const AttentionProblem& p, TileSize sizes) {
    CAPTURE(describe(p));
    CAPTURE(name_of(schedule));
    CAPTURE(sizes.q);
    CAPTURE(sizes.kv);
    AttentionData<float> data(p, /*seed=*/7);
    for (float& x : data.o) x = std::nanf("");
    for (float& x : data.lse) x = std::nanf("");
    run_schedule(schedule, p, data.tensors(), sizes, nullptr);
    const ReferenceResult gold = reference_attention(p, data.tensors());
    const std::vector<float> o(data.o.begin(), data.o.end());
    CHECK(largest_difference(o, gold.o) <= 2e-6);
    CHECK(largest_difference(data.lse, gold.lse) <= 4e-6);
}

TEST_CASE("any pair of block sizes gives the naive result") {
    for (const bool causal : {false, true})
        for (const std::int64_t length : {64, 96, 97, 128, 129})
            for (const TileSize sizes : {TileSize{64, 64},
                                         {64, 32},
                                         {32, 64},
                                         {16, 128},
                                         {128, 16},
                                         {33, 65},
                                         {1, 7},
                                         {7, 1},
                                         {256, 256},
                                         {1, 256}})
                for (const Schedule schedule : SCHEDULES)
                    check_against_reference(schedule, square(length, 16, causal), sizes);
}

TEST_CASE("unequal lengths, grouped heads, odd dimensions") {
    for (const bool causal : {false, true})
        for (const auto& [len_q, len_kv] :
             {std::pair{1, 1}, {5, 2}, {3, 100}, {100, 3}, {65, 64}, {64, 65}, {40, 0}})
            for (const TileSize sizes : {TileSize{16, 16}, {16, 8}, {8, 16}, {64, 64}})
                for (const Schedule schedule : SCHEDULES)
                    check_against_reference(schedule,
                                            {.batch = 2,
                                             .heads_q = 4,
                                             .heads_kv = 2,
                                             .len_q = len_q,
                                             .len_kv = len_kv,
                                             .head_dim = 13,
                                             .causal = causal},
                                            sizes);
}

TEST_CASE("the mean of the visible positions") {
    // K = 0 makes all weights equal, and V_j = j: O_i is the mean of 0 … i, which is i/2.
    for (const std::int64_t length : {64, 96, 97, 128, 129})
        for (const TileSize sizes : {TileSize{64, 32}, {32, 64}, {64, 64}, {48, 20}})
            for (const Schedule schedule : SCHEDULES) {
                CAPTURE(length);
                CAPTURE(name_of(schedule));
                const AttentionProblem p = square(length, 8, true);
                AttentionData<float> data(p, /*seed=*/3);
                for (float& x : data.k) x = 0;
                for (std::int64_t j = 0; j < length; ++j)
                    for (std::int64_t c = 0; c < 8; ++c) data.v(0, 0, j, c) = static_cast<float>(j);
                run_schedule(schedule, p, data.tensors(), sizes, nullptr);
                for (std::int64_t i = 0; i < length; ++i)
                    CHECK(data.o(0, 0, i, 5) == doctest::Approx(0.5 * static_cast<double>(i)));
            }
}

TEST_CASE("NaN and infinity in masked keys touch nothing, in visible keys their rows only") {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const AttentionProblem p = square(40, 8, true);
    for (const Schedule schedule : SCHEDULES)
        for (const TileSize sizes : {TileSize{16, 16}, {16, 8}, {8, 32}, {64, 64}})
            for (const std::int64_t poisoned : {0, 5, 16, 17, 39}) {
                CAPTURE(name_of(schedule));
                CAPTURE(poisoned);
                AttentionData<float> clean(p, /*seed=*/5), data(p, /*seed=*/5);
                data.k(0, 0, poisoned, 3) = nan;
                data.v(0, 0, poisoned, 2) = std::numeric_limits<float>::infinity();
                run_schedule(schedule, p, clean.tensors(), sizes, nullptr);
                run_schedule(schedule, p, data.tensors(), sizes, nullptr);
                for (std::int64_t i = 0; i < p.len_q; ++i)
                    for (std::int64_t c = 0; c < p.head_dim; ++c)
                        if (i < poisoned)
                            REQUIRE(data.o(0, 0, i, c) == clean.o(0, 0, i, c));
                        else
                            REQUIRE(std::isnan(data.o(0, 0, i, c)));
            }
}

TEST_CASE("scores of minus infinity have no weight") {
    // Key 0 is −∞ for every query; then all keys are.
    const float infinity = std::numeric_limits<float>::infinity();
    const AttentionProblem p = square(24, 4, false);
    for (const Schedule schedule : SCHEDULES) {
        CAPTURE(name_of(schedule));
        AttentionData<float> data(p, /*seed=*/5);
        for (float& x : data.q) x = 1;
        for (float& x : data.k) x = 0;
        for (float& x : data.v) x = 1;
        data.k(0, 0, 0, 0) = -infinity;
        data.v(0, 0, 0, 0) = 1000;
        run_schedule(schedule, p, data.tensors(), {8, 8}, nullptr);
        for (const float o : data.o) CHECK(o == doctest::Approx(1.0));
        for (const float lse : data.lse) CHECK(lse == doctest::Approx(std::log(23.0)));

        for (std::int64_t j = 0; j < p.len_kv; ++j) data.k(0, 0, j, 0) = -infinity;
        run_schedule(schedule, p, data.tensors(), {8, 8}, nullptr);
        for (const float o : data.o) CHECK(o == 0);
        for (const float lse : data.lse) CHECK(lse == -infinity);
    }
}

TEST_CASE("one thread or many: the same bits") {
    const AttentionProblem p{.batch = 2,
                             .heads_q = 3,
                             .heads_kv = 3,
                             .len_q = 130,
                             .len_kv = 130,
                             .head_dim = 24,
                             .causal = true};
    for (const LoopOrder order : {LoopOrder::q_outer, LoopOrder::kv_outer}) {
        std::vector<float> first;
        for (const int threads : {1, 2, 3, 8}) {
            AttentionData<float> data(p, /*seed=*/11);
            const AlignedBuffer workspace(blocked_workspace_bytes(p, order, {32, 16}, threads));
            blocked_attention(p, data.tensors(), order, {32, 16}, workspace.bytes(), threads);
            std::vector<float> o(data.o.begin(), data.o.end());
            if (first.empty()) first = o;
            CHECK(o == first);
        }
    }
}

TEST_CASE("tiles meet the mask as they should") {
    // 10 queries and 14 keys: query i sees keys 0 … i + 4. Blocks of 4 queries and 3 keys.
    const AttentionProblem p{.len_q = 10, .len_kv = 14, .head_dim = 4, .causal = true};
    const std::vector<std::string> want = {
        "   1   [2]  [3]   .    .",   //
        "   4    5    6   [7]   .",   //
        "   8    9   10   11  [12]",  //
    };
    AttentionData<float> data(p, /*seed=*/1);
    ScheduleTrace trace;
    run_schedule(Schedule::q_outer, p, data.tensors(), {4, 3}, &trace);
    const std::vector<std::string> lines = trace.drawing();
    REQUIRE(lines.size() == want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
        std::string line = lines[i];
        line.erase(line.find_last_not_of(' ') + 1);
        CHECK(line == want[i]);
    }
}

TEST_CASE("a skipped tile moves nothing, and the orders visit in their own order") {
    const AttentionProblem p = square(16, 4, true);
    AttentionData<float> data(p, /*seed=*/1);
    using What = ScheduleTrace::Step::What;

    ScheduleTrace q_outer;
    run_schedule(Schedule::q_outer, p, data.tensors(), {4, 4}, &q_outer);
    // Block 0 of the queries sees block 0 of the keys alone: Q, the tile, K, V, three tiles passed
    // over without a load, O and LSE.
    const auto& steps = q_outer.steps();
    REQUIRE(steps.size() > 9);
    CHECK(steps[0].operand == Operand::q);
    CHECK(steps[1].kind == TileKind::diagonal);
    CHECK(steps[2].operand == Operand::k);
    CHECK(steps[3].operand == Operand::v);
    for (std::size_t i = 4; i < 7; ++i) CHECK(steps[i].kind == TileKind::skipped);
    CHECK(steps[7].what == What::store);
    CHECK(steps[7].operand == Operand::o);
    CHECK(steps[8].operand == Operand::lse);

    // With K and V outside, each block of keys is loaded once, and O once a tile.
    ScheduleTrace kv_outer;
    run_schedule(Schedule::kv_outer, p, data.tensors(), {4, 4}, &kv_outer);
    std::vector<std::int64_t> key_blocks;
    int tiles = 0, o_loads = 0;
    for (const auto& step : kv_outer.steps()) {
        if (step.what == What::load && step.operand == Operand::k) key_blocks.push_back(step.block);
        if (step.what == What::load && step.operand == Operand::o) ++o_loads;
        if (step.what == What::tile && step.kind != TileKind::skipped) ++tiles;
    }
    CHECK(key_blocks == std::vector<std::int64_t>{0, 1, 2, 3});
    CHECK(tiles == 10);
    CHECK(o_loads == 10 + 4);  // and once more to be divided

    const nlohmann::ordered_json json = kv_outer.json();
    CHECK(json.size() == kv_outer.steps().size());
    CHECK(json[0]["store"] == "O");
    CHECK(json[0]["bytes"] == 4 * 4 * 4);
}

TEST_CASE("counted traffic is that of the formulas, byte for byte") {
    for (const bool causal : {false, true})
        for (const DType dtype : {DType::f32, DType::bf16})
            for (const auto& [len_q, len_kv] :
                 {std::pair{64, 64}, {100, 100}, {1, 1}, {7, 40}, {40, 7}, {129, 65}})
                for (const TileSize sizes : {TileSize{16, 16}, {16, 5}, {5, 16}, {200, 200}})
                    for (const Schedule schedule : SCHEDULES) {
                        const AttentionProblem p{.batch = 2,
                                                 .heads_q = 2,
                                                 .heads_kv = 1,
                                                 .len_q = len_q,
                                                 .len_kv = len_kv,
                                                 .head_dim = 8,
                                                 .dtype = dtype,
                                                 .causal = causal};
                        CAPTURE(describe(p));
                        CAPTURE(name_of(schedule));
                        TrafficCounter counter;
                        with_element_type(dtype, [&](auto element) {
                            AttentionData<decltype(element)> data(p, /*seed=*/2);
                            run_schedule(schedule, p, data.tensors(), sizes, &counter);
                        });
                        const Traffic expected = expected_traffic(p, schedule, sizes);
                        CHECK(counter.traffic == expected);
                        // The cost model, which other chapters predict with, says the same;
                        // it leaves LSE out.
                        if (schedule == Schedule::three_pass) continue;
                        const Cost model = schedule == Schedule::q_outer ? q_outer_cost(p, sizes)
                                                                         : kv_outer_cost(p, sizes);
                        CHECK(static_cast<double>(expected.total() - expected.of(Operand::lse)) ==
                              model.bytes);
                    }
}

TEST_CASE("what three passes move more is S and P, twice each") {
    const AttentionProblem p = square(256, 32, false);
    const TileSize sizes{32, 64};
    CHECK(expected_traffic(p, Schedule::three_pass, sizes).total() -
              expected_traffic(p, Schedule::q_outer, sizes).total() ==
          4 * 4 * 256 * 256);
}

TEST_CASE("the block of the outer loop gets the on-chip memory") {
    const std::int64_t elements = 96 * 1024 / 4;
    const TileSize kv = tiles_on_chip(elements, 64, Schedule::kv_outer);
    CHECK(kv.kv == 96);
    CHECK(kv.q == 64);
    const TileSize q = tiles_on_chip(elements, 64, Schedule::q_outer);
    CHECK(q.q == 96);
    CHECK(q.kv == 64);
}

TEST_CASE("wrong tiles and small workspaces are refused") {
    const AttentionProblem p = square(8, 4, false);
    AttentionData<float> data(p, /*seed=*/1);
    for (const TileSize sizes : {TileSize{0, 8}, TileSize{8, 0}, TileSize{-1, 8}})
        for (const Schedule schedule : SCHEDULES)
            CHECK_THROWS_AS(run_schedule(schedule, p, data.tensors(), sizes, nullptr),
                            std::invalid_argument);
    const std::size_t bytes = blocked_workspace_bytes(p, LoopOrder::q_outer, {8, 8}, 1);
    const AlignedBuffer workspace(bytes);
    CHECK_THROWS_AS(blocked_attention(p, data.tensors(), LoopOrder::q_outer, {8, 8},
                                      workspace.bytes().first(bytes - 1), 1),
                    std::invalid_argument);
}

}  // namespace
}  // namespace fa
