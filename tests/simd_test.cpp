#include "chapters/03_blocked_attention/simd.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace fa {
namespace {

using simd::Floats;
using simd::LANES;

constexpr float INFINITE = std::numeric_limits<float>::infinity();
constexpr float NOT_A_NUMBER = std::numeric_limits<float>::quiet_NaN();

/// The exponential of one number, from a vector whose other lanes hold something else.
float exp_of(float x) {
    Floats lanes = simd::broadcast(-1.0f);
    lanes[LANES - 1] = x;
    return simd::exp_nonpositive(lanes)[LANES - 1];
}

/// The relative error that simd.h promises. f = x − n·ln 2 loses n times the fp32 error of ln 2,
/// and without a fused multiply-add the rounding of n·ln 2 too.
double exp_error_bound(float x) {
    // Instrumented code is hardly optimised: there the compiler leaves multiply and add apart.
#if (defined(__FMA__) || defined(__aarch64__)) && !defined(FA_SANITIZED)
    return 2.2e-7 + 3e-9 * std::abs(double{x});
#else
    return 2.2e-7 + 6.3e-8 * std::abs(double{x});
#endif
}

/// One number, widened in a vector.
template <class Half>
float widened(std::uint16_t bits) {
    std::array<Half, LANES> numbers{};
    numbers[LANES / 2].bits = bits;
    return simd::load(numbers.data())[LANES / 2];
}

TEST_CASE("exp: the values that must be exact") {
    CHECK(exp_of(0.0f) == 1.0f);
    CHECK(exp_of(-0.0f) == 1.0f);
    CHECK(exp_of(-std::numeric_limits<float>::denorm_min()) == 1.0f);
    // Masked scores are −∞: no weight at all, and a plain zero.
    CHECK(exp_of(-INFINITE) == 0.0f);
    CHECK(!std::signbit(exp_of(-INFINITE)));
    for (const float x : {-86.995f, -87.3f, -87.34f, -88.4f, -104.0f, -1e4f, -3e38f})
        CHECK(exp_of(x) == 0.0f);
    CHECK(std::isnan(exp_of(NOT_A_NUMBER)));
    CHECK(std::isnan(exp_of(-NOT_A_NUMBER)));
}

TEST_CASE("exp: lanes do not touch each other") {
    for (int lane = 0; lane < LANES; ++lane) {
        Floats x = simd::broadcast(-2.0f);
        x[lane] = NOT_A_NUMBER;
        x[(lane + 1) % LANES] = -INFINITE;
        const Floats y = simd::exp_nonpositive(x);
        for (int i = 0; i < LANES; ++i) {
            if (i == lane)
                CHECK(std::isnan(y[i]));
            else if (i == (lane + 1) % LANES)
                CHECK(y[i] == 0.0f);
            else
                CHECK(y[i] == doctest::Approx(std::exp(-2.0)));
        }
    }
}

TEST_CASE("exp: error over the whole range, never subnormal, and it never rises far") {
    // Every 499th float from −0 down to −90.
    double worst = 0, previous = 1;
    float worst_at = 0;
    const auto last = std::bit_cast<std::uint32_t>(-90.0f);
    for (auto bits = std::bit_cast<std::uint32_t>(-0.0f); bits <= last; bits += 499) {
        const auto x = std::bit_cast<float>(bits);
        const double got = double{exp_of(x)}, want = std::exp(double{x});
        REQUIRE((got == 0 || got >= double{std::numeric_limits<float>::min()}));
        REQUIRE(got <= previous * (1 + 1.2e-7));  // to one unit in the last place
        previous = got;
        if (x < -86.98f) continue;
        const double bound = exp_error_bound(x);
        const double error = std::abs(got - want) / want / bound;
        if (error > worst || std::isnan(error)) worst = error, worst_at = x;
    }
    CAPTURE(worst_at);
    CHECK(worst <= 1);
    CHECK(worst >= 0.2);  // the bound says something
}

TEST_CASE("exp: continuous where the power of two changes") {
    for (int n = 0; n < 125; ++n) {
        const auto border = static_cast<float>(-(n + 0.5) * std::log(2.0));
        const double above = double{exp_of(std::nextafter(border, 0.0f))};
        const double below = double{exp_of(std::nextafter(border, -INFINITE))};
        const double errors = 2 * exp_error_bound(border);
        const double distance = std::abs(double{border}) * 0x1p-21;  // two steps of x at most
        CHECK(below <= above * (1 + errors));
        CHECK(below >= above * (1 - errors - distance));
    }
}

/// 2^x of one number, from a vector whose other lanes hold something else.
float exp2_of(float x) {
    Floats lanes = simd::broadcast(-1.0f);
    lanes[0] = x;
    return simd::exp2(lanes)[0];
}

TEST_CASE("exp2: the values that must be exact") {
    // Powers of two, up to 2^127 and down to 2^-125.
    for (int n = -125; n <= 127; ++n) CHECK(exp2_of(static_cast<float>(n)) == std::ldexp(1.0f, n));
    CHECK(exp2_of(-0.0f) == 1.0f);
    CHECK(exp2_of(std::numeric_limits<float>::denorm_min()) == 1.0f);
    CHECK(exp2_of(-INFINITE) == 0.0f);
    CHECK(!std::signbit(exp2_of(-INFINITE)));
    for (const float x : {-125.51f, -126.0f, -126.5f, -150.0f, -1e4f, -3e38f})
        CHECK(exp2_of(x) == 0.0f);
    CHECK(std::isnan(exp2_of(NOT_A_NUMBER)));
    CHECK(std::isnan(exp2_of(-NOT_A_NUMBER)));
}

TEST_CASE("exp2: error over the whole range, never subnormal") {
    double worst = 0;
    float worst_at = 0;
    const auto look_at = [&](float x) {
        const double got = double{exp2_of(x)}, want = std::exp2(double{x});
        REQUIRE((got == 0 || got >= double{std::numeric_limits<float>::min()}));
        if (x < -125.5f) return;
        const double error = std::abs(got - want) / want;
        if (error > worst || std::isnan(error)) worst = error, worst_at = x;
    };
    // Every 499th float from −0 down to −127, and from 0 up to 127.
    const auto lowest = std::bit_cast<std::uint32_t>(-127.0f);
    for (auto bits = std::bit_cast<std::uint32_t>(-0.0f); bits <= lowest; bits += 499)
        look_at(std::bit_cast<float>(bits));
    const auto highest = std::bit_cast<std::uint32_t>(127.0f);
    for (std::uint32_t bits = 0; bits <= highest; bits += 499) look_at(std::bit_cast<float>(bits));
    CAPTURE(worst_at);
    CHECK(worst <= 2.3e-7);
    CHECK(worst >= 1e-7);  // the bound says something
}

TEST_CASE("larger: NaN gives way") {
    const Floats nan = simd::broadcast(NOT_A_NUMBER), one = simd::broadcast(1.0f);
    CHECK(simd::larger(nan, one)[0] == 1.0f);
    CHECK(simd::larger(simd::broadcast(2.0f), one)[0] == 2.0f);
    CHECK(simd::larger(simd::broadcast(-INFINITE), one)[0] == 1.0f);
    CHECK(simd::larger(simd::broadcast(-INFINITE), simd::broadcast(-INFINITE))[0] == -INFINITE);
}

TEST_CASE("broadcast keeps the sign of zero, and infinity") {
    CHECK(std::signbit(simd::broadcast(-0.0f)[0]));
    CHECK(!std::signbit(simd::broadcast(0.0f)[0]));
    CHECK(simd::broadcast(-INFINITE)[LANES - 1] == -INFINITE);
}

TEST_CASE("all 65,536 numbers of both 16-bit types widen as one by one") {
    for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        const float f16 = widened<Float16>(half), bf16 = widened<BFloat16>(half);
        // Bit for bit, NaN too.
        REQUIRE(std::bit_cast<std::uint32_t>(f16) ==
                std::bit_cast<std::uint32_t>(from_float16_bits(half)));
        REQUIRE(std::bit_cast<std::uint32_t>(bf16) ==
                std::bit_cast<std::uint32_t>(from_bfloat16_bits(half)));
    }
}

}  // namespace
}  // namespace fa
