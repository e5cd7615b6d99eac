// Power by a stand-in for NVML (fake_nvml.cpp), and where it cannot be known.

#include <doctest/doctest.h>
#include <stdlib.h>

#include <stdexcept>

#include "common/cuda/power.h"

namespace fa {
namespace {

constexpr const char* GPU = "0000:01:00.0";

/// FAKE_NVML for a scope.
class Lacking {
  public:
    explicit Lacking(const char* what) { setenv("FAKE_NVML", what, 1); }
    ~Lacking() { unsetenv("FAKE_NVML"); }
    Lacking(const Lacking&) = delete;
    Lacking& operator=(const Lacking&) = delete;
};

TEST_CASE("power: energy over time, between two steps of the counter") {
    const EnergyCounter counter(GPU, FA_FAKE_NVML);
    REQUIRE(counter.joules());
    int calls = 0;
    const auto power = mean_power(
        counter, [&] { ++calls; }, 0.5);
    REQUIRE(power);
    CHECK(*power == doctest::Approx(250).epsilon(0.1));
    CHECK(calls > 10);
    CHECK(watts(power).ends_with(" W"));
}

TEST_CASE("power: not known, and no error") {
    int calls = 0;
    const auto unknown = [&](const EnergyCounter& counter) {
        CHECK(!counter.joules());
        CHECK(!mean_power(
            counter, [&] { ++calls; }, 0.1));
    };
    unknown(EnergyCounter(GPU, "libno-such-library.so.1"));
    unknown(EnergyCounter(GPU, "libm.so.6"));  // without NVML's functions
    unknown(EnergyCounter("0000:02:00.0", FA_FAKE_NVML));
    for (const char* what : {"driver", "counter"}) {
        const Lacking lacking(what);
        unknown(EnergyCounter(GPU, FA_FAKE_NVML));
    }
    CHECK(calls == 0);
    CHECK(watts({}) == "-");
}

TEST_CASE("power: a counter that stands still, and work that fails, end") {
    const Lacking lacking("steps");
    const EnergyCounter counter(GPU, FA_FAKE_NVML);
    CHECK(counter.joules() == 7.0);
    CHECK(!mean_power(
        counter, [] {}, 0.01));
    CHECK_THROWS_WITH_AS(mean_power(
                             counter, [] { throw std::runtime_error("broken"); }, 60),
                         "broken", std::runtime_error);
}

}  // namespace
}  // namespace fa
