// Every check of the suite, on every implementation of the list that runs on FA_SUITE_DEVICE (one
// test program for each device): a test case for each check, a subcase for each implementation.
// Inputs and gold are computed once for all of them.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "chapters/08_tensor_cores/ladder.h"
#include "chapters/09_hopper/cuda_hopper.h"
#include "chapters/09_hopper/executor_hopper.h"
#include "chapters/09_hopper/ladder.h"
#include "chapters/implementations.h"
#include "tests/attention_suite.h"
#include "tests/suite_run.h"
#ifdef FA_CUDA_ENABLED
#include "common/cuda/device.h"
#endif

namespace fa::suite {
namespace {

std::set<std::string_view>& checks_with_a_test() {
    static std::set<std::string_view> names;
    return names;
}

/// What is tested: the list's entries for the device. With gaps of chunks, only those that move
/// rows in chunks, and on the executor the steps that lead to them, too.
std::vector<Implementation> implementations() {
    std::vector<Implementation> chosen;
    int first_chapter = 0;
#ifdef FA_SUITE_CHUNKS
    use_gaps_of_chunks();
    first_chapter = 8;
#ifndef FA_SANITIZED  // under which the executor is ten times as slow
    if (const Device device = Device::FA_SUITE_DEVICE; device == Device::executor)
        for (const auto& more :
             {ladder_on_executor(), hopper_ladder_on_executor(), hopper_sizes_on_executor()})
            chosen.insert(chosen.end(), more.begin(), more.end());
#endif
#endif
    for (const Implementation& implementation : all_implementations())
        if (implementation.device == Device::FA_SUITE_DEVICE &&
            implementation.chapter >= first_chapter)
            chosen.push_back(implementation);
#ifdef FA_HOPPER_ENABLED
    if (Device::FA_SUITE_DEVICE == Device::cuda) {
        chosen.push_back(CUDA_HOPPER_PAIRED);
        for (const auto& sizes : {hopper_sizes64_on_gpu(), hopper_sizes128_on_gpu()})
            for (const HopperSize& size : sizes) chosen.push_back(size.implementation);
    }
#endif
    return chosen;
}

/// Why the device cannot be used here, or empty.
std::string why_skipped() {
#ifdef FA_CUDA_ENABLED
    if (Device::FA_SUITE_DEVICE == Device::cuda) return why_no_gpu();
#endif
    return {};
}

void run_on_all(std::string_view name) {
    if (const std::string reason = why_skipped(); !reason.empty()) {
        std::printf("skipped: %s\n", reason.c_str());
        return;
    }
    const SuiteCheck& check = check_named(name);
    for (const Implementation& implementation : implementations()) {
        SUBCASE(std::string(implementation.name).c_str()) {
            // A fault can break hundreds of values; a dozen lines tell the story.
            constexpr std::size_t SHOWN = 12;
            const Failures failures = run_check(check, implementation);
            for (std::size_t n = 0; n < failures.size() && n < SHOWN; ++n) FAIL_CHECK(failures[n]);
            CHECK_MESSAGE(failures.empty(), fmt::format("{} failures in all", failures.size()));
        }
    }
}

#define SUITE_CHECK(NAME)                                                     \
    const bool NAME##_has_a_test = checks_with_a_test().insert(#NAME).second; \
    TEST_CASE("attention: " #NAME) {                                          \
        REQUIRE(NAME##_has_a_test);                                           \
        run_on_all(#NAME);                                                    \
    }

SUITE_CHECK(known_values)
SUITE_CHECK(causal_means)
SUITE_CHECK(scale)
SUITE_CHECK(lengths)
SUITE_CHECK(unequal_lengths)
SUITE_CHECK(head_dims)
SUITE_CHECK(last_channel)
SUITE_CHECK(rows_without_keys)
SUITE_CHECK(minus_infinity_scores)
SUITE_CHECK(masked_keys)
SUITE_CHECK(visible_nan)
SUITE_CHECK(extreme_scores)
SUITE_CHECK(grouped_heads)
SUITE_CHECK(poison)
SUITE_CHECK(layouts)
SUITE_CHECK(far_apart)
SUITE_CHECK(many_heads)
SUITE_CHECK(repeatable)
SUITE_CHECK(threads)
SUITE_CHECK(heap)
SUITE_CHECK(door)
SUITE_CHECK(refusals)

TEST_CASE("attention: every check of the suite has a test case") {
    std::set<std::string_view> names;
    for (const SuiteCheck& check : attention_suite()) names.insert(check.name);
    CHECK(names.size() == attention_suite().size());
    CHECK(names == checks_with_a_test());
}

TEST_CASE("attention: the list of implementations is well formed") {
    std::set<std::string_view> names;
    int on_this_device = 0;
    for (const Implementation& implementation : all_implementations()) {
        on_this_device += implementation.device == Device::FA_SUITE_DEVICE;
        CAPTURE(std::string(implementation.name));
        CHECK_FALSE(implementation.name.empty());
        CHECK(names.insert(implementation.name).second);
        CHECK(implementation.chapter >= 1);
        CHECK_FALSE(implementation.summary.empty());
        CHECK(bool(implementation.why_unsupported));
        CHECK(bool(implementation.workspace_bytes));
        CHECK(bool(implementation.run));
        CHECK(&implementation_named(implementation.name) == &implementation);
    }
    CHECK(names.size() >= 2);
    CHECK(on_this_device >= 1);  // this program tests something
    CHECK_THROWS_WITH_AS(implementation_named("no_such"), doctest::Contains("cpu_naive"),
                         std::invalid_argument);
}

}  // namespace
}  // namespace fa::suite
