/// @file
/// A seed names the same numbers everywhere, and they are standard-normal.

#include "common/random.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <vector>

#include "common/half.h"

using fa::Random;

TEST_CASE("seed 1 gives the numbers that the definition gives") {
    // Computed outside C++, from the definitions of MT19937-64 (Matsumoto and Nishimura) and of the
    // Box-Muller transform.
    Random uniform(1);
    CHECK(uniform.uniform() == 0.13387664401253274);
    CHECK(uniform.uniform() == 0.13640703636619733);
    Random normal(1);
    for (const double expected : {1.312851529, 1.250603921, 1.228522, 1.095749617})
        CHECK(static_cast<double>(normal.normal()) == doctest::Approx(expected).epsilon(1e-7));
    Random below(1);
    for (const std::uint64_t expected :
         {std::uint64_t{528}, std::uint64_t{462}, std::uint64_t{930}})
        CHECK(below.below(1000) == expected);
}

TEST_CASE("the same seed gives the same numbers, another seed others") {
    std::array<float, 1000> a{}, b{}, c{};
    Random(7).fill_normal(a);
    Random(7).fill_normal(b);
    Random(8).fill_normal(c);
    CHECK(a == b);
    CHECK(a != c);
}

TEST_CASE("normal numbers have the moments and tails of the normal distribution") {
    Random random(3);
    constexpr int COUNT = 1'000'000;
    double sum = 0, squares = 0, cubes = 0, fourths = 0;
    int beyond_2 = 0, beyond_4 = 0;
    bool finite = true;
    for (int i = 0; i < COUNT; ++i) {
        const double x = static_cast<double>(random.normal());
        finite = finite && std::isfinite(x);
        sum += x;
        squares += x * x;
        cubes += x * x * x;
        fourths += x * x * x * x;
        beyond_2 += std::abs(x) > 2;
        beyond_4 += std::abs(x) > 4;
    }
    // Bounds of five standard errors: 1/sqrt(n) times 1, sqrt(2), sqrt(15), sqrt(96).
    CHECK(finite);
    CHECK(std::abs(sum / COUNT) < 5e-3);
    CHECK(std::abs(squares / COUNT - 1) < 7.1e-3);
    CHECK(std::abs(cubes / COUNT) < 19.4e-3);
    CHECK(std::abs(fourths / COUNT - 3) < 49e-3);
    CHECK(std::abs(beyond_2 - 45500) < 5 * 209);  // P(|x| > 2) = 4.550 %
    CHECK(std::abs(beyond_4 - 63) < 5 * 8);       // P(|x| > 4) = 6.33e-5
}

TEST_CASE("uniform numbers lie above 0 and reach up to 1, so that their logarithm is finite") {
    Random random(5);
    double least = 1, most = 0;
    for (int i = 0; i < 1'000'000; ++i) {
        const double x = random.uniform();
        least = std::min(least, x);
        most = std::max(most, x);
    }
    CHECK(least > 0);
    CHECK(least < 1e-4);
    CHECK(most <= 1);
    CHECK(most > 0.9999);
}

TEST_CASE("below() stays below and reaches every value") {
    Random random(9);
    std::array<int, 7> counts{};
    for (int i = 0; i < 70'000; ++i) ++counts.at(random.below(7));
    for (const int count : counts) CHECK(std::abs(count - 10'000) < 500);
}

TEST_CASE("fill_normal fills every element type, scaled") {
    std::vector<float> plain(100), scaled(100);
    std::vector<fa::BFloat16> bf16(100);
    std::vector<fa::Float16> f16(100);
    Random(2).fill_normal(plain);
    Random(2).fill_normal(scaled, 3.0f);
    Random(2).fill_normal(bf16);
    Random(2).fill_normal(f16);
    for (std::size_t i = 0; i < plain.size(); ++i) {
        CHECK(scaled[i] == 3.0f * plain[i]);
        CHECK(bf16[i].bits == fa::to_bfloat16_bits(plain[i]));
        CHECK(f16[i].bits == fa::to_float16_bits(plain[i]));
    }
}
