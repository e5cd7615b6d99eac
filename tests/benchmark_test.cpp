#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "chapters/01_memory_accounting/naive_attention.h"
#include "chapters/06_benchmark/accuracy.h"
#include "chapters/06_benchmark/benchmark_rows.h"
#include "chapters/06_benchmark/block_sizes.h"
#include "chapters/06_benchmark/crossover.h"
#include "chapters/06_benchmark/errors.h"
#include "chapters/06_benchmark/measured_ceilings.h"
#include "chapters/06_benchmark/prediction.h"
#include "chapters/06_benchmark/report.h"
#include "chapters/06_benchmark/shapes.h"
#include "chapters/06_benchmark/tiles_of.h"
#include "chapters/06_benchmark/timed_case.h"
#include "chapters/06_benchmark/timing_methods.h"
#include "chapters/implementations.h"
#include "common/attention_data.h"
#include "common/program.h"
#include "common/run_from_host.h"

using namespace fa;
using doctest::Approx;

namespace {

AttentionProblem small(std::int64_t length, DType dtype = DType::f32) {
    return {.batch = 2,
            .heads_q = 4,
            .heads_kv = 2,
            .len_q = length,
            .len_kv = length,
            .head_dim = 32,
            .dtype = dtype,
            .causal = true};
}

Row timed_row(std::vector<double> seconds) {
    Row row;
    row.implementation = &CPU_NAIVE;
    row.problem = {.len_q = 1024, .len_kv = 1024, .head_dim = 64};
    row.name = row_name(*row.implementation, row.problem, CacheState::warm);
    row.status = RowStatus::ok;
    row.seconds = std::move(seconds);
    return row;
}

/// An implementation that takes every problem, and refuses how its tensors lie.
Implementation refusing() {
    Implementation implementation = CPU_NAIVE;
    implementation.name = "refusing";
    implementation.why_tensors_unsupported = [](const AttentionProblem&, const AttentionTensors&) {
        return std::string("rows of 7 elements");
    };
    return implementation;
}

/// A machine that does as much of everything in a second.
CeilingsByType ceilings_of(double rate) {
    return {{DType::f32,
             {.name = "x", .bytes_per_s = rate, .flops_per_s = rate, .exponentials_per_s = rate}}};
}

}  // namespace

TEST_CASE("names of rows") {
    AttentionProblem p = small(512);
    CHECK(row_name(CPU_NAIVE, p, CacheState::cold) ==
          "cpu_naive/B2/H4kv2/T512/d32/fp32/causal/cold");
    p.heads_kv = 4;
    p.len_kv = 640;
    p.causal = false;
    p.dtype = DType::bf16;
    CHECK(row_name(CPU_NAIVE, p, CacheState::warm) ==
          "cpu_naive/B2/H4/Tq512/Tk640/d32/bf16/full/warm");
}

TEST_CASE("sets of shapes have names and row names of their own") {
    for (const Device device : {Device::cpu, Device::cuda}) {
        std::set<std::string> sets, rows;
        for (const ShapeSet& set : shape_sets(device)) {
            CHECK(sets.insert(set.name).second);
            for (const std::int64_t length : set.lengths) {
                CHECK_NOTHROW(validate(set.problem(length)));
                CHECK(
                    rows.insert(row_name(CPU_NAIVE, set.problem(length), CacheState::warm)).second);
            }
        }
    }
    const std::vector<ShapeSet> all = shape_sets(Device::cuda);
    CHECK(all.front().title() == "B4 H12 d64 bf16 causal");
    CHECK(all.front().lengths.back() == 16384);
    CHECK(chosen_sets(all, "--shapes", "all").size() == all.size());
    CHECK(chosen_sets(all, "--shapes", "full,causal").front().name == "causal");
    CHECK_THROWS_AS(chosen_sets(all, "--shapes", "causal,nope"), UsageError);
    CHECK_THROWS_AS(chosen_sets(all, "--shapes", ""), UsageError);
}

TEST_CASE("no row is warm whose inputs are larger than the cache") {
    const std::vector<ShapeSet> sets{{"x", small(0), {64, 4096}}};
    const RowOptions options{.implementations = {&CPU_NAIVE},
                             .caches = {CacheState::cold, CacheState::warm},
                             .case_options = {}};
    const double cache = 2 * tensor_bytes(small(64));
    const std::vector<Row> rows = make_rows(sets, options, cache);
    CHECK(rows.size() == 3);
    CHECK(std::ranges::count(rows, CacheState::warm, &Row::cache) == 1);
    CHECK(make_rows(sets, options, 0).size() == 4);
    const std::vector<ShapeSet> alike{{"x", small(0), {64}}, {"y", small(0), {64, 128}}};
    CHECK(make_rows(alike, options, 0).size() == 4);
}

TEST_CASE("FLOPs by the convention, and the rate that follows") {
    AttentionProblem p{.len_q = 1024, .len_kv = 1024, .head_dim = 64};
    CHECK(p.flops() == 268'435'456.0);
    CHECK(visible_scores(p) == 1024.0 * 1024.0);
    p.causal = true;
    CHECK(p.flops() == 134'217'728.0);
    CHECK(visible_scores(p) == 1024.0 * 1025.0 / 2);

    const Row row = timed_row({3e-3, 1e-3, 2e-3});
    CHECK(row.median() == 2e-3);
    CHECK(row.fastest() == 1e-3);
    CHECK(row.flops_per_s() * row.median() == Approx(row.problem.flops()));
    const auto json = row.json(ceilings_of(1e12));
    CHECK(json["tflops"].get<double>() * json["median_ms"].get<double>() ==
          Approx(json["flops"].get<double>() * 1e-9));
    CHECK(json["bound"] == "products");
    CHECK(json["bound_share"].get<double>() == Approx(268'435'456e-12 / 2e-3));
    CHECK(json["name"].get<std::string>().ends_with("/manual_time"));
}

TEST_CASE("a row without a time has nulls and a reason") {
    Row row = timed_row({});
    row.status = RowStatus::out_of_memory;
    row.reason = "too large";
    const auto json = row.json(ceilings_of(1));
    CHECK(json["status"] == "out_of_memory");
    CHECK(json["reason"] == "too large");
    for (const char* key : {"median_ms", "min_ms", "tflops", "bound_share", "scratch_bytes"})
        CHECK(json[key].is_null());
}

TEST_CASE("medians") {
    CHECK(median_of({5}) == 5);
    CHECK(median_of({3, 1, 2}) == 2);
    CHECK(median_of({4, 1, 3, 2}) == 2.5);
    CHECK_THROWS_AS(median_of({}), std::invalid_argument);
}

TEST_CASE("the crossover is interpolated in logarithms") {
    // naive/fused goes from 1/2 to 2 as T goes from 64 to 256: it is 1 at T = 128.
    CHECK(*crossover({{64, 1, 2}, {256, 4, 2}}) == Approx(128));
    // From 1/8 to 2, a quarter of the way is left.
    CHECK(*crossover({{16, 1, 8}, {256, 4, 2}}) == Approx(128));
    // The last crossing counts: before it the fused way was faster by chance.
    CHECK(*crossover({{16, 2, 1}, {64, 1, 2}, {256, 4, 2}, {512, 8, 2}}) == Approx(128));
    CHECK(*crossover({{64, 1, 1}, {256, 4, 2}}) == Approx(64));

    CHECK_FALSE(crossover({{64, 4, 2}, {256, 4, 2}}));  // always faster
    CHECK_FALSE(crossover({{64, 4, 2}, {256, 1, 2}}));  // slower at the longest
    CHECK_FALSE(crossover({{64, 1, 2}, {256, std::nan(""), 2}}));
    CHECK_FALSE(crossover({{64, 4, 2}}));
    CHECK_FALSE(crossover({}));
}

TEST_CASE("what the crossover comes to in words") {
    CHECK(verdict({{64, 1, 2}, {256, 4, 2}}) == "faster from T = 128 on");
    CHECK(verdict({{64, 4, 2}, {256, 4, 2}}) == "faster at every length from 64 to 256");
    CHECK(verdict({{64, 1, 2}, {256, 1, 2}}) == "not faster at any length from 64 to 256");
    CHECK(verdict({{64, 2, 1}, {256, 2, 4}}) ==
          "faster at first, slower from T = 128 on, up to 256");
    CHECK(verdict({{16, 1, 2}, {64, 2, 1}, {256, 2, 4}}) == "slower from T = 128 on, up to 256");
    CHECK(verdict({}) == "nothing was timed");
}

TEST_CASE("how full tiles are") {
    AttentionProblem p{.len_q = 128, .len_kv = 128, .head_dim = 8};
    CHECK(tile_fill(p, 64, 64) == 1);
    p.len_q = p.len_kv = 65;
    CHECK(tile_fill(p, 64, 64) == Approx(65.0 * 65 / (128 * 128)));
    p.causal = true;  // the first row of tiles is one tile
    CHECK(tile_fill(p, 64, 64) == Approx(65.0 * 66 / 2 / (64 * 64 + 64 * 128)));
    CHECK(tile_fill(p, 1, 1) == 1);
    p.len_q = 0;
    CHECK(tile_fill(p, 64, 64) == 1);
}

TEST_CASE("errors: groups of rows, NaN, zero") {
    const std::vector<double> gold{1, 2, 4, 0};
    const Errors errors = errors_of(std::vector<float>{1, 2.5f, 4, 0}, gold, 2);
    CHECK(errors.largest == 0.5);
    CHECK(errors.rms == 0.25);
    CHECK(errors.relative == 0.125);
    CHECK(errors_of(std::vector<float>{1, 2, 4, 0}, gold, 2).relative == 0);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    CHECK(std::isnan(errors_of(std::vector<float>{nan, 2, 4, 0}, gold, 2).largest));
    CHECK(std::isnan(errors_of(std::vector<float>{nan, 2, 4, 0}, gold, 2).relative));
    CHECK(std::isinf(errors_of(std::vector<float>{1e-9f}, std::vector<double>{0}, 1).relative));
    CHECK_THROWS_AS(errors_of(std::vector<float>{1}, gold, 1), std::invalid_argument);

    // A small error in rows with small outputs is not hidden by large outputs elsewhere.
    std::vector<float> o(64, 1.0f);
    std::vector<double> g(64, 1.0);
    for (std::size_t i = 32; i < 64; ++i) g[i] = 1e-3, o[i] = 1e-3f;
    o[40] = 2e-3f;
    CHECK(errors_of(o, g, 1).relative == Approx(1));
}

TEST_CASE("a spot check passes what is right and finds what is not") {
    const AttentionProblem p = small(100, DType::bf16);
    AttentionData<BFloat16> data(p, 3);
    run_from_host(CPU_NAIVE, p, data.tensors());
    const CopyToHost copy = [](void* to, const void* from, std::size_t bytes) {
        std::copy_n(static_cast<const std::byte*>(from), bytes, static_cast<std::byte*>(to));
    };
    const auto share = [&] { return spot_check(p, data.tensors(), copy, 5).share; };
    CHECK(share() <= 1);
    CHECK(share() > 0);

    const Tensor<BFloat16> right = data.o;
    for (auto& element : data.o) element = BFloat16(static_cast<float>(element) * 1.05f);
    CHECK(share() > 1);
    std::ranges::fill(data.o, BFloat16(0.0f));
    CHECK(share() > 1);
    data.o = right;
    data.o(1, 3, 99, 31) = BFloat16(std::numeric_limits<float>::quiet_NaN());
    CHECK_FALSE(share() <= 1);
    // The scale is taken literally.
    data.o = right;
    AttentionProblem scaled = p;
    scaled.scale = 3.0f;
    CHECK(spot_check(scaled, data.tensors(), copy, 5).share > 1);
}

TEST_CASE("a prepared case times, checks, and counts its scratch") {
    const AttentionProblem p = small(96);
    for (const char* name : {"cpu_naive", "cpu_blocked", "cpu_fast"}) {
        CAPTURE(name);
        const Implementation& implementation = implementation_named(name);
        const auto timed = prepare(implementation, p, CacheState::warm, {.seed = 2, .threads = 2});
        CHECK(timed->run() > 0);
        CHECK(timed->calls() == 1);
        CHECK(timed->scratch_bytes() >= implementation.workspace_bytes(p, {.threads = 2}));
        CHECK(timed->check().share <= 1);
        const Timing timing = time_case(*timed, 5);
        CHECK(timing.runs == 5);
        CHECK(timing.median >= timing.fastest);
    }
}

TEST_CASE("a memory limit refuses before anything is allocated, and the next size runs") {
    const Implementation& naive = CPU_NAIVE;
    const CaseOptions options{.seed = 1, .threads = 1, .memory_limit = 1 << 20};
    // Scores of 2^20 × 2^20: more than any machine would give.
    CHECK_THROWS_AS(prepare(naive, small(1 << 20), CacheState::warm, {}), OutOfMemory);
    bool named = false;
    try {
        prepare(naive, small(1024), CacheState::warm, options);
    } catch (const OutOfMemory& error) {
        named = std::string(error.what()).find("1048576 free") != std::string::npos;
    }
    CHECK(named);
    CHECK_NOTHROW(prepare(naive, small(64), CacheState::warm, options));
    CHECK_NOTHROW(prepare(implementation_named("cpu_fast"), small(128), CacheState::warm, options));
}

TEST_CASE("CPU implementations have no cold rows") {
    CHECK_THROWS_AS(prepare(CPU_NAIVE, small(8), CacheState::cold, {}), std::invalid_argument);
}

TEST_CASE("tiles of implementations") {
    const AttentionProblem p = small(64);
    CHECK_FALSE(tiles_of(CPU_NAIVE, p));
    CHECK(tiles_of(implementation_named("cpu_blocked"), p)->q == 64);
    CHECK(tiles_of(implementation_named("cpu_fast"), p)->kv > 0);
}

TEST_CASE("each family of block sizes has one default and no size twice") {
    for (const Family& family : block_size_families(Device::cpu)) {
        std::set<std::pair<std::int64_t, std::int64_t>> sizes;
        for (const Candidate& c : family.candidates) {
            CHECK(sizes.insert({c.tiles.q, c.tiles.kv}).second);
            const auto timed = prepare(c.implementation, small(100), CacheState::warm, {});
            CHECK(timed->check().share <= 1);
        }
        CHECK(std::ranges::count(family.candidates, true, &Candidate::is_default) == 1);
    }
}

TEST_CASE("the bound is the longest of three parts") {
    const AttentionProblem p{.len_q = 1024, .len_kv = 1024, .head_dim = 64, .causal = true};
    const Cost cost = least_cost(p);
    CHECK(cost.bytes == 4.0 * 1024 * 64 * 4);
    CHECK(cost.flops == p.flops());
    CHECK(cost.exponentials == 1024.0 * 1025 / 2);
    const Ceilings slow_memory{
        .name = "x", .bytes_per_s = 1, .flops_per_s = 1e30, .exponentials_per_s = 1e30};
    CHECK(bound_seconds(slow_memory, p) == cost.bytes);
}

TEST_CASE("predictions: the naive way step by step, tiles in one kernel") {
    AttentionProblem p{.len_q = 1024, .len_kv = 1024, .head_dim = 64};
    const CeilingsByType products{{DType::f32,
                                   {.name = "products only",
                                    .bytes_per_s = 1e30,
                                    .flops_per_s = 1e12,
                                    .exponentials_per_s = 1e30}}};
    const auto seconds = [&](const char* name) {
        return *predicted_seconds(implementation_named(name), p, products);
    };
    const double full = p.flops() / 1e12;
    CHECK(seconds("cpu_naive") == Approx(full));
    CHECK(seconds("cpu_blocked") == Approx(full));
    p.causal = true;  // the naive way computes what is visible, tiles those of 136 of 256 tiles
    CHECK(seconds("cpu_naive") == Approx(full * 1025 / 2048));
    CHECK(seconds("cpu_blocked") == Approx(full * 136 / 256));
    CHECK(seconds("cpu_blocked_kv_outer") == Approx(full * 136 / 256));

    // Where bytes cost all, S in 16 bits is cheaper, and no scores cheaper still.
    const CeilingsByType bytes{{DType::f32,
                                {.name = "bytes only",
                                 .bytes_per_s = 1e9,
                                 .flops_per_s = 1e30,
                                 .exponentials_per_s = 1e30}}};
    const auto naive = *predicted_seconds(implementation_named("cpu_naive"), p, bytes);
    CHECK(naive > *predicted_seconds(implementation_named("cpu_naive_bf16_scores"), p, bytes));
    CHECK(naive > *predicted_seconds(implementation_named("cpu_fast"), p, bytes));
    CHECK_FALSE(predicted_seconds(implementation_named("executor_tiled"), p, bytes));
    CHECK_THROWS_AS(ceilings_for(bytes, DType::bf16), std::invalid_argument);
}

TEST_CASE("a refusal of tensors is told wherever something is timed, and not judged") {
    const Implementation implementation = refusing();
    const AttentionProblem p = small(32);
    CHECK_THROWS_AS(prepare(implementation, p, CacheState::warm, {}), Unsupported);
    Program program("x", "x");
    SUBCASE("crossover") {
        show_crossover(program, p, {8, 32}, CPU_NAIVE,
                       {&implementation, &implementation_named("cpu_fast")}, {.threads = 1});
        REQUIRE(program.checks.list().size() == 1);
        CHECK(program.checks.list()[0].name == "cpu_fast: lengths timed beside cpu_naive");
        const auto& found = program.results.extras["crossover"];
        CHECK(found[0]["verdict"] == "refused: refusing: rows of 7 elements");
        CHECK(found[0]["points"].empty());
        CHECK(found[1]["points"].size() == 2);
    }
    SUBCASE("crossover, where the naive way refuses") {
        show_crossover(program, p, {8, 32}, implementation, {&implementation_named("cpu_fast")},
                       {.threads = 1});
        CHECK(program.checks.list().empty());
        CHECK(program.results.extras["crossover"][0]["verdict"] ==
              "refused: refusing: rows of 7 elements");
    }
    SUBCASE("block sizes") {
        Family family = block_size_families(Device::cpu).front();
        for (Candidate& candidate : family.candidates)
            candidate.implementation.why_tensors_unsupported =
                implementation.why_tensors_unsupported;
        show_block_sizes(program, {family}, p, {32}, Device::cpu, {});
        CHECK(program.checks.list().empty());
        // One of many: the others are tried.
        family.candidates.back().implementation.why_tensors_unsupported = nullptr;
        show_block_sizes(program, {family}, p, {32}, Device::cpu, {});
        CHECK(program.checks.all_pass());
        CHECK(program.results.extras["block_sizes"].size() == 1);
    }
    SUBCASE("ways of timing") {
        show_timing_methods(program, implementation, p, {8, 32}, {.threads = 1});
        CHECK(program.checks.list().empty());
        show_timing_methods(program, implementation_named("cpu_fast"), p, {8, 32}, {.threads = 1});
        CHECK(program.checks.all_pass());
    }
    SUBCASE("rows") {
        std::vector<Row> rows = make_rows({{"x", p, {8}}},
                                          {.implementations = {&implementation},
                                           .caches = {CacheState::warm},
                                           .case_options = {}},
                                          0);
        BenchmarkRun benchmark(BenchmarkFlags({}), 1);
        benchmark.run(rows, {.threads = 1}, ceilings_of(1e12));
        CHECK(rows[0].status == RowStatus::unsupported);
        CHECK(rows[0].reason == "refusing: rows of 7 elements");
        CHECK(rows[0].json(ceilings_of(1e12))["predicted_ms"].is_null());
        report_rows(program, {}, rows, ceilings_of(1e12));
        CHECK(program.checks.list().size() == 2);  // that rows were timed, and that none failed
        CHECK_FALSE(program.checks.all_pass());
    }
}

TEST_CASE("an implementation that writes nothing does not pass by what another wrote") {
    Implementation silent = CPU_NAIVE;
    silent.name = "silent";
    silent.run = [](const AttentionProblem&, const AttentionTensors&, std::span<std::byte>,
                    const Launch&) {};
    Program program("x", "x");
    show_accuracy(program, small(0), {16}, {&CPU_NAIVE, &silent});
    REQUIRE(program.checks.list().size() == 2);
    CHECK(program.checks.list()[0].pass);
    CHECK_FALSE(program.checks.list()[1].pass);
    CHECK_FALSE(prepare(silent, small(16), CacheState::warm, {})->check().share <= 1);
}

TEST_CASE("Google Benchmark's filter, as the library reads it") {
    const auto takes = [](const char* filter) {
        return BenchmarkFlags({std::string("--benchmark_filter=") + filter})
            .takes("cpu_naive/B1/T64/warm/manual_time");
    };
    CHECK(BenchmarkFlags({}).takes("x"));
    for (const char* filter : {"naive.*T64/", "all", "time$", "-fast", "fast|naive"}) {
        CAPTURE(filter);
        CHECK(takes(filter));
    }
    for (const char* filter : {"fast", "-naive", "^naive"}) {
        CAPTURE(filter);
        CHECK_FALSE(takes(filter));
    }
    CHECK_FALSE(BenchmarkFlags({"--benchmark_filter=naive", "--benchmark_filter=fast"})
                    .takes("naive"));  // the last one counts
}
