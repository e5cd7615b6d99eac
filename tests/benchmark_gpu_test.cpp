// Chapter 6 on the GPU: what is timed is right, what does not fit is said, and the sizes that are
// tried are what they say.

#include <algorithm>
#include <set>

#include "chapters/04_cuda_tiled/naive_attention_cuda.h"
#include "chapters/04_cuda_tiled/tiled_attention.h"
#include "chapters/06_benchmark/block_sizes.h"
#include "chapters/06_benchmark/errors.h"
#include "chapters/06_benchmark/measured_ceilings.h"
#include "chapters/06_benchmark/prediction.h"
#include "chapters/06_benchmark/tiles_of.h"
#include "chapters/06_benchmark/timed_case.h"
#include "chapters/06_benchmark/timing_methods.h"
#include "chapters/implementations.h"
#include "tests/gpu_test.h"

namespace fa {
namespace {

AttentionProblem problem_of(std::int64_t length) {
    return {.batch = 2,
            .heads_q = 4,
            .heads_kv = 4,
            .len_q = length,
            .len_kv = length,
            .head_dim = 64,
            .dtype = DType::bf16,
            .causal = true};
}

std::vector<const Implementation*> on_the_gpu() {
    std::vector<const Implementation*> list;
    for (const Implementation& implementation : all_implementations())
        if (implementation.device == Device::cuda) list.push_back(&implementation);
    return list;
}

TEST_CASE("gpu: every implementation is timed, cold and warm, and was right") {
    SKIP_WITHOUT_GPU();
    const AttentionProblem p = problem_of(300);
    for (const Implementation* implementation : on_the_gpu())
        for (const CacheState cache : {CacheState::cold, CacheState::warm}) {
            CAPTURE(implementation->name);
            CAPTURE(name_of(cache));
            const auto timed = prepare(*implementation, p, cache, {.seed = 4});
            CHECK(timed->run() > 0);
            CHECK(timed->calls() >= 1);
            CHECK(timed->kernels() >= 1);
            CHECK(timed->scratch_bytes() == implementation->workspace_bytes(p, {}));
            CHECK(timed->clock_mhz() > 100);
            CHECK(timed->clock_mhz() < 5000);
            if (!implementation->rounds_scores) CHECK(timed->check().share <= 1);
        }
}

TEST_CASE("gpu: a long call is not slower for being one of many, and longer than a short one") {
    SKIP_WITHOUT_GPU();
    const auto seconds = [](std::int64_t length) {
        const auto timed =
            prepare(CUDA_REGISTER_TILED, problem_of(length), CacheState::warm, {.seed = 4});
        return time_case(*timed, 10).median;
    };
    const double at_1k = seconds(1024), at_4k = seconds(4096);
    CHECK(at_4k > 4 * at_1k);
    CHECK(at_4k < 64 * at_1k);
}

TEST_CASE("gpu: what a small card cannot hold is out of memory, and the next size runs") {
    SKIP_WITHOUT_GPU();
    const CaseOptions small_card{.seed = 1, .threads = 0, .memory_limit = 64 << 20};
    bool refused = false;
    try {
        prepare(CUDA_NAIVE, problem_of(4096), CacheState::warm, small_card);
    } catch (const OutOfMemory& error) {
        refused = true;
        CHECK(std::string(error.what()).find("bytes") != std::string::npos);
    }
    CHECK(refused);
    CHECK(prepare(CUDA_NAIVE, problem_of(256), CacheState::warm, small_card)->check().share <= 1);
    CHECK(prepare(CUDA_REGISTER_TILED, problem_of(4096), CacheState::warm, small_card)
              ->check()
              .share <= 1);
    CHECK(prepare(CUDA_NAIVE, problem_of(4096), CacheState::warm, {})->check().share <= 1);
}

TEST_CASE("gpu: each family of block sizes has one default, no size twice, and all are right") {
    SKIP_WITHOUT_GPU();
    for (const Family& family : block_size_families(Device::cuda)) {
        CAPTURE(family.name);
        std::set<std::pair<std::int64_t, std::int64_t>> sizes;
        for (const Candidate& c : family.candidates) {
            CAPTURE(c.tiles.q);
            CAPTURE(c.tiles.kv);
            CHECK(sizes.insert({c.tiles.q, c.tiles.kv}).second);
            CHECK_FALSE(c.resources.empty());
            CHECK(prepare(c.implementation, problem_of(193), CacheState::warm, {})->check().share <=
                  1);
        }
        CHECK(std::ranges::count(family.candidates, true, &Candidate::is_default) == 1);
    }
}

TEST_CASE("gpu: ceilings and predictions") {
    SKIP_WITHOUT_GPU();
    const CeilingsByType ceilings{{DType::bf16, measure_ceilings(Device::cuda, DType::bf16, 0)},
                                  {DType::f32, measure_ceilings(Device::cuda, DType::f32, 0)}};
    for (const auto& [dtype, c] : ceilings) {
        CHECK(c.bytes_per_s > 1e11);
        CHECK(c.flops_per_s > 1e12);
        CHECK(c.exponentials_per_s > 1e11);
    }
    // Tensor cores for the one, and none for the other.
    CHECK(ceilings[0].second.flops_per_s > 2 * ceilings[1].second.flops_per_s);
    const AttentionProblem p = problem_of(2048);
    for (const Implementation* implementation : on_the_gpu()) {
        CAPTURE(implementation->name);
        const auto predicted = predicted_seconds(*implementation, p, ceilings);
        const bool is_naive = implementation->name.find("naive") != std::string_view::npos;
        const bool has_tiles = tiles_of(*implementation, p).has_value();
        CHECK(predicted.has_value() == (is_naive || has_tiles));  // later chapters have their own
        if (!predicted) continue;
        CHECK(*predicted >= bound_seconds(ceilings[0].second, p));
        if (!has_tiles) continue;  // the scores may stay in L2, unpredicted
        const auto timed = prepare(*implementation, p, CacheState::cold, {});
        CHECK(time_case(*timed, 5).fastest > *predicted);
    }
    CHECK(tiles_of(CUDA_TILED, p)->q > 0);
    CHECK_FALSE(tiles_of(CUDA_NAIVE, p));
}

TEST_CASE("gpu: the ways of timing come out in the order that they must") {
    SKIP_WITHOUT_GPU();
    const auto ways = cuda_timing_methods(CUDA_REGISTER_TILED, problem_of(1024), 1);
    REQUIRE(ways.size() >= 5);
    for (const auto& [way, seconds] : ways) {
        CAPTURE(way);
        CHECK(seconds > 0);
    }
    // Not waiting for the GPU measures less than waiting.
    CHECK(ways[0].second < ways[1].second);
}

}  // namespace
}  // namespace fa
