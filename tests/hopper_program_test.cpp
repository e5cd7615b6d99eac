// What chapter 9's program is made of: the model of the steps, the timeline, the watchdog.

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <typeindex>
#include <typeinfo>
#include <vector>

#include "chapters/09_hopper/ablation_kinds.h"
#include "chapters/09_hopper/fit_pace.h"
#include "chapters/09_hopper/hopper_model.h"
#include "chapters/09_hopper/layout_results.h"
#include "chapters/09_hopper/timeline.h"
#include "chapters/09_hopper/watchdog.h"

namespace fa {
namespace {

AttentionProblem square(std::int64_t length, bool causal) {
    return {.batch = 4,
            .heads_q = 12,
            .heads_kv = 12,
            .len_q = length,
            .len_kv = length,
            .dtype = DType::bf16,
            .causal = causal};
}

TEST_CASE("the model: clocks of the units, counted by hand") {
    // Two warpgroups, 128 queries and 128 keys of 64 channels: 2^14 scores.
    const UnitClocks two = unit_clocks({.warpgroups = 2, .block_n = 128, .head_dim = 64});
    CHECK(two.tensor == 1024);        // 4 · 2^14 · 64 operations at 4096 a clock
    CHECK(two.exponentials == 1024);  // 2^14 at 16
    CHECK(two.multiply_adds == 320);  // 2^14 twice, and 128 · 64 of O, at 128
    CHECK(two.comparisons == 384);    // 2^14 maxima and half as many conversions at 64
    CHECK(two.issue == 640);          // 2560 instructions of 32 threads at 4
    CHECK(two.shared == 896);         // 2 · (8 + 16 + 16) KiB read, 32 KiB written, at 128 bytes
    CHECK(two.softmax() == 1024);
    CHECK(two.busiest() == 1024);

    const UnitClocks three = unit_clocks({.warpgroups = 3, .block_n = 128, .head_dim = 64});
    CHECK(three.tensor == 1536);
    CHECK(three.shared == 1216);

    const UnitClocks wide = unit_clocks({.warpgroups = 2, .block_n = 128, .head_dim = 128});
    CHECK(wide.tensor == 2048);
    CHECK(wide.multiply_adds == 384);
    CHECK(wide.issue == 704);
    CHECK(wide.shared == 1792);

    // The lazy maximum takes two scores at a time, and O is left alone.
    const UnitClocks lazy =
        unit_clocks({.warpgroups = 2, .block_n = 128, .rescale = Rescale::lazy});
    CHECK(lazy.multiply_adds == 256);
    CHECK(lazy.comparisons == 256);
    CHECK(unit_clocks({.rescale = Rescale::rare}).comparisons == 128);
}

TEST_CASE("the model: schedules order what the units do") {
    const auto clocks = [](Schedule schedule) { return block_clocks({.schedule = schedule}); };
    CHECK(clocks(Schedule::together) == 1024);
    CHECK(clocks(Schedule::shadow) == 512 + 1024);
    CHECK(clocks(Schedule::in_turn) == 2048);
    CHECK(clocks(Schedule::load_too) == 2048 + 600 + 32768 / 64);
}

TEST_CASE("the model: what a causal mask wastes") {
    // n tiles of 128: n (n + 1) / 2 blocks where T (T + 1) / 2 scores are wanted.
    const ModelledStep two{.warpgroups = 2, .block_n = 128};
    for (const std::int64_t n : {4, 8, 16, 128}) {
        const auto tiles = static_cast<double>(n), length = 128 * tiles;
        CHECK(causal_waste(two, square(128 * n, true)) ==
              doctest::Approx(tiles * (tiles + 1) * 128 * 128 / (length * (length + 1))));
    }
    CHECK(causal_waste(two, square(512, false)) == 1);
    // Larger tiles waste more, unless each warpgroup stops at its own diagonal.
    const ModelledStep four{.warpgroups = 4, .block_n = 64};
    ModelledStep own = four;
    own.own_diagonal = true;
    const AttentionProblem p = square(512, true);
    CHECK(causal_waste(four, p) == doctest::Approx(12.0 * 4 * 64 * 64 / (512 * 513 / 2)));
    CHECK(causal_waste(own, p) == doctest::Approx(36.0 * 64 * 64 / (512 * 513 / 2)));
}

TEST_CASE("the model: seconds of tiles on multiprocessors") {
    constexpr double CLOCK = 1e9;
    AttentionProblem p = square(128, false);
    const ModelledStep step{.schedule = Schedule::in_turn};
    // 48 tiles, 132 multiprocessors: as long as one, a block and three for its ends.
    CHECK(predicted_seconds(step, p, CLOCK) == doctest::Approx(4 * 2048 / CLOCK));
    p.batch = 11;  // 132 tiles, and then one more
    CHECK(predicted_seconds(step, p, CLOCK) == doctest::Approx(4 * 2048 / CLOCK));
    p.batch = 12;
    CHECK(predicted_seconds(step, p, CLOCK) == doctest::Approx(8 * 2048 / CLOCK));
    CHECK(predicted_seconds(step, p, 2 * CLOCK) == doctest::Approx(4 * 2048 / CLOCK));
}

TEST_CASE("the model: without a mask the tile that is not full comes last") {
    // Three heads of a full tile and one of a few rows, on 132 multiprocessors: 132 full ones go
    // first, then 44 short ones beside nobody. Were the short ones first, the last full ones would
    // begin behind them.
    AttentionProblem p = square(130, false);
    p.batch = 11;
    const ModelledStep step{.schedule = Schedule::in_turn};
    const double with_rest = predicted_seconds(step, p, 1e9);
    p.len_q = 128;
    const double full = predicted_seconds(step, p, 1e9);
    CHECK(with_rest > full);
    CHECK(with_rest <= 2 * full);
}

TEST_CASE("the model: no step is faster than its busiest unit") {
    for (const bool causal : {false, true})
        for (const std::int64_t length : {1, 512, 1000, 4096}) {
            const AttentionProblem p = square(length, causal);
            std::vector<ModelledStep> steps = modelled_steps();
            CHECK(steps.size() == 8);
            steps.push_back(modelled_last(p));
            for (const ModelledStep& step : steps) {
                CAPTURE(step.name);
                CAPTURE(length);
                CHECK(least_seconds(step, p, 1e9) > 0);
                CHECK(least_seconds(step, p, 1e9) <= predicted_seconds(step, p, 1e9));
            }
        }
}

TEST_CASE("paces: found again from the times that they predict") {
    constexpr TilePace TRUE_PACE{.launch = 1, .start = 4, .step = 0.25, .alone = 0.4};
    constexpr TileKind KIND{.rows = 64, .at_once = 3};
    std::vector<TimedLaunch> times;
    for (const std::int64_t length : {64, 200, 512, 1024, 2048, 4096})
        for (const bool causal : {false, true}) {
            const AttentionProblem p = square(length, causal);
            times.push_back({p, predicted_microseconds(p, 132, KIND, TRUE_PACE)});
        }
    const auto close = [](double a, double b) { return std::fabs(a / b - 1) < 0.05; };
    // One launch that took far too long changes nothing.
    for (const double outlier : {1, 10}) {
        times.front().microseconds *= outlier;
        const TilePace found = fit_pace(times, 132, KIND, {2, 3, 0.4, 0.3});
        CHECK(close(found.start + found.launch, 5));
        CHECK(close(found.step, 0.25));
        CHECK(close(found.alone, 0.4));
    }
    CHECK(fit_pace(times, 132, KIND, {2, 3, 0.4, 0}).alone == 0);
}

TEST_CASE("every element of D has one holder") {
    std::set<int> seen;
    for (int t = 0; t < 128; ++t)
        for (int j = 0; j < 8; ++j)
            for (int e = 0; e < 4; ++e) {
                const auto [row, column] = place_in_d(t, j, e);
                CHECK(row < 64);
                CHECK(column < 64);
                seen.insert(64 * row + column);
            }
    CHECK(seen.size() == 64 * 64);
}

/// The variants for a number of channels, in order.
struct Variants {
    std::int64_t head_dim;
    std::vector<std::string> names = {};
    std::vector<std::type_index> kinds = {};

    template <class Config>
    void operator()(std::string_view name) {
        CAPTURE(name);
        CHECK(Config::HEAD_DIM == head_dim);
        CHECK(Config::SHARED_BYTES <= HOPPER_SHARED_LIMIT);
        CHECK(finds_its_registers<Config>());
        names.emplace_back(name);
        kinds.emplace_back(typeid(Config));
    }
};

TEST_CASE("variants: none is there twice, and the first is what 2048 tokens get") {
    Variants of64{64}, of128{128};
    for_each_hopper_variant64(of64);
    for_each_hopper_variant128(of128);
    for (const Variants& variants : {of64, of128}) {
        CAPTURE(variants.head_dim);
        CHECK(std::set(variants.names.begin(), variants.names.end()).size() ==
              variants.names.size());
        CHECK(std::set(variants.kinds.begin(), variants.kinds.end()).size() ==
              variants.kinds.size());
        AttentionProblem p = square(2048, true);
        p.head_dim = variants.head_dim;
        HopperKernel::with_config(p, Multiprocessor::COUNT, [&]<class Config>() {
            CHECK(variants.kinds.front() == std::type_index(typeid(Config)));
        });
    }
}

TEST_CASE("timeline: events lie between the stamps of a warpgroup") {
    // Two blocks of two warpgroups, four stamps at most; the last warpgroup has left none.
    std::vector<TraceStamp> stamps(16);
    stamps[0] = {100, 7, TracePhase::products};
    stamps[1] = {130, 7, TracePhase::softmax};
    stamps[2] = {200, 7, TracePhase::end};
    stamps[4] = {90, 7, TracePhase::wait_keys};
    stamps[5] = {95, 7, TracePhase::products};
    stamps[8] = {1000, 3, TracePhase::finish};
    stamps[9] = {1010, 3, TracePhase::end};
    const std::vector<int> counts{3, 2, 2, 0};
    const TracedSchedule schedule{"s", timeline_of(stamps, counts, 2, 4)};
    nlohmann::ordered_json array = nlohmann::ordered_json::array();
    add_to_json(array, schedule);
    CHECK(array == nlohmann::ordered_json::parse(R"([
        {"schedule": "s", "block": 0, "warpgroup": 0, "tile": 7, "phase": "products",
         "begin": 10, "end": 40},
        {"schedule": "s", "block": 0, "warpgroup": 0, "tile": 7, "phase": "softmax",
         "begin": 40, "end": 110},
        {"schedule": "s", "block": 0, "warpgroup": 1, "tile": 7, "phase": "waits for keys",
         "begin": 0, "end": 5},
        {"schedule": "s", "block": 1, "warpgroup": 0, "tile": 3, "phase": "finishes",
         "begin": 0, "end": 10}])"));
    auto shares = phase_shares(schedule.events);
    CHECK(shares[TracePhase::softmax] == doctest::Approx(70.0 / 115));
    CHECK(shares[TracePhase::finish] == doctest::Approx(10.0 / 115));
    CHECK(phase_shares({}).empty());

    CHECK_THROWS_AS(timeline_of(stamps, counts, 3, 4), std::invalid_argument);
    CHECK_THROWS_AS(timeline_of(stamps, counts, 2, 3), std::invalid_argument);
    CHECK_THROWS_AS(timeline_of(stamps, std::vector{5, 0, 0, 0}, 2, 4), std::invalid_argument);
    stamps[1].clock = 99;
    CHECK_THROWS_AS(timeline_of(stamps, counts, 2, 4), std::invalid_argument);
}

TEST_CASE("timeline: on the executor every warpgroup goes through its tiles") {
    AttentionProblem p = square(128, true);
    p.batch = 1;
    p.heads_q = p.heads_kv = 1;
    for (const TracedSchedule& schedule : trace_on_executor(p, 1, 1, 256)) {
        CAPTURE(schedule.name);
        std::set<int> finished;
        for (const TimelineEvent& e : schedule.events) {
            if (e.phase == TracePhase::finish) finished.insert(e.warpgroup);
            CHECK(e.begin <= e.end);
        }
        CHECK(finished.size() == (schedule.name == "four warpgroups" ? 4 : 2));
    }
}

TEST_CASE("watchdog: ends a process that makes no progress, and only that") {
    int channel[2];
    REQUIRE(pipe(channel) == 0);
    std::cout.flush();  // or the child would, too
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        dup2(channel[1], STDERR_FILENO);
        Watchdog watchdog("here", std::chrono::milliseconds(200));
        for (int i = 0; i < 3; ++i) {  // longer than the limit, but not at once
            watchdog.begin("quick");
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
        watchdog.begin("slow");
        std::this_thread::sleep_for(std::chrono::seconds(60));
        _exit(0);
    }
    close(channel[1]);
    std::string said;
    for (char c; read(channel[0], &c, 1) == 1;) said += c;
    close(channel[0]);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 1);
    CHECK(said == "here: no end after 200 ms: slow\n");
    // One that is done in time.
    Watchdog(std::string("here"), std::chrono::seconds(60)).begin("nothing");
}

}  // namespace
}  // namespace fa
