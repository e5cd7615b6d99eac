/// @file
/// Layer norm, GELU, linear layers and the sums of exponentials, value by value.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "chapters/07_gpt2_124m/layers.h"
#include "chapters/07_gpt2_124m/rounding.h"
#include "chapters/07_gpt2_124m/summation.h"
#include "common/random.h"

using namespace fa;

namespace {

constexpr float INFINITE = std::numeric_limits<float>::infinity();
constexpr float NOT_A_NUMBER = std::numeric_limits<float>::quiet_NaN();

float gelu(float x) {
    // 37 at once: vectors, and a rest that goes one by one through another exp.
    std::vector<float> values(37, x);
    gelu_tanh(values);
    const float first = values.front();
    for (const float value : values) {
        const float bound = 1e-6f * std::abs(first) + 1e-30f;
        CHECK((std::isfinite(first) ? std::abs(value - first) <= bound : !std::isfinite(value)));
    }
    return first;
}

double gelu_fp64(double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

NormWeights unit_norm(std::size_t width) {
    return {std::vector<float>(width, 1), std::vector<float>(width, 0)};
}

std::vector<float> norm_of(const NormWeights& norm, const std::vector<float>& x) {
    std::vector<float> out(x.size());
    layer_norm(norm, x.data(), 1, 1e-5f, out.data(), {});
    return out;
}

}  // namespace

TEST_CASE("GELU is the tanh form") {
    CHECK(gelu(1) == doctest::Approx(0.841192).epsilon(1e-6));
    CHECK(gelu(-2) == doctest::Approx(-0.0454023).epsilon(1e-6));
    CHECK(gelu(2.3f) == doctest::Approx(2.275673).epsilon(1e-6));
    CHECK(gelu(0) == 0);
    // The erf form is up to 4.73e-4 away: at 2.699 the two must not be mixed up.
    const double erf_form = 2.699 / 2 * (1 + std::erf(2.699 / std::sqrt(2.0)));
    CHECK(std::abs(static_cast<double>(gelu(2.699f)) - erf_form) ==
          doctest::Approx(4.73e-4).epsilon(0.01));
    for (double x = -12; x <= 12; x += 0.0625)
        CHECK(std::abs(static_cast<double>(gelu(static_cast<float>(x))) - gelu_fp64(x)) <=
              3e-7 * std::max(1.0, std::abs(x)));
}

TEST_CASE("GELU at the ends") {
    CHECK(gelu(INFINITE) == INFINITE);
    CHECK(gelu(1e30f) == 1e30f);
    CHECK(std::abs(gelu(-INFINITE)) < 1e-30f);
    CHECK(std::abs(gelu(-1e30f)) < 1e-30f);
    CHECK(std::isnan(gelu(NOT_A_NUMBER)));
    // A NaN stays where it is.
    std::vector<float> values(35, 1);
    values[17] = NOT_A_NUMBER;
    gelu_tanh(values);
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(std::isnan(values[i]) == (i == 17));
}

TEST_CASE("layer norm: values") {
    NormWeights norm;
    std::vector<float> x;
    Random random(1);
    for (int i = 0; i < 771; ++i) {
        norm.gain.push_back(random.normal());
        norm.bias.push_back(random.normal());
        x.push_back(3 + 2 * random.normal());
    }
    double mean = 0, variance = 0;
    for (const float v : x) mean += double{v} / 771;
    for (const float v : x) variance += (v - mean) * (v - mean) / 771;
    const std::vector<float> out = norm_of(norm, x);
    for (std::size_t i = 0; i < x.size(); ++i)
        CHECK(std::abs(out[i] - ((x[i] - mean) / std::sqrt(variance + 1e-5) * double{norm.gain[i]} +
                                 double{norm.bias[i]})) <= 3e-6);
}

TEST_CASE("layer norm: a constant row gives the bias") {
    NormWeights norm = unit_norm(100);
    for (std::size_t i = 0; i < 100; ++i) norm.bias[i] = static_cast<float>(i);
    // 0.1 is no fp32 number, so its sum over a row rounds; what is left of it must not be blown up.
    for (const float constant : {0.0f, 0.1f, -3.3f, 1e4f, 1e7f}) {
        const std::vector<float> out = norm_of(norm, std::vector<float>(100, constant));
        CAPTURE(constant);
        for (std::size_t i = 0; i < 100; ++i)
            CHECK(out[i] == doctest::Approx(static_cast<double>(i)).epsilon(1e-3));
    }
}

TEST_CASE("layer norm: a large mean and a small spread") {
    // mean(x²) − mean(x)² is all rounding here: 1e8 has a step of 8, and the variance is 1e-4.
    std::vector<float> x;
    Random random(2);
    for (int i = 0; i < 768; ++i) x.push_back(1e4f + 1e-2f * random.normal());
    double mean = 0, variance = 0;
    for (const float v : x) mean += double{v} / 768;
    for (const float v : x) variance += (v - mean) * (v - mean) / 768;
    const std::vector<float> out = norm_of(unit_norm(768), x);
    for (std::size_t i = 0; i < x.size(); ++i)
        CHECK(std::abs(out[i] - (x[i] - mean) / std::sqrt(variance + 1e-5)) <= 1e-3);
}

TEST_CASE("layer norm: in place, and NaN keeps to its row") {
    std::vector<float> x(5 * 40);
    Random(3).fill_normal(x);
    std::vector<float> apart(x.size());
    layer_norm(unit_norm(40), x.data(), 5, 1e-5f, apart.data(), {});
    std::vector<float> in_place = x;
    layer_norm(unit_norm(40), in_place.data(), 5, 1e-5f, in_place.data(), {});
    CHECK(in_place == apart);
    for (const std::size_t at : std::vector<std::size_t>{0, 16, 39}) {
        std::vector<float> spoiled = x;
        spoiled[2 * 40 + at] = NOT_A_NUMBER;
        layer_norm(unit_norm(40), spoiled.data(), 5, 1e-5f, spoiled.data(), {});
        for (std::size_t i = 0; i < x.size(); ++i) {
            if (i / 40 == 2)
                CHECK(std::isnan(spoiled[i]));
            else
                CHECK(spoiled[i] == apart[i]);
        }
    }
}

TEST_CASE("linear layers: values at any size, finishes, threads") {
    struct Size {
        std::int64_t rows, in, out;
    };
    for (const Size size :
         {Size{1, 1, 1}, Size{1, 70, 300}, Size{3, 5, 257}, Size{257, 17, 3}, Size{513, 40, 520}}) {
        CAPTURE(size.rows);
        CAPTURE(size.in);
        CAPTURE(size.out);
        Random random(4);
        LinearWeights layer{size.in, size.out, {}, {}};
        layer.weight.resize(static_cast<std::size_t>(size.in * size.out));
        layer.bias.resize(static_cast<std::size_t>(size.out));
        std::vector<float> x(static_cast<std::size_t>(size.rows * size.in));
        std::vector<float> before(static_cast<std::size_t>(size.rows * size.out));
        random.fill_normal(layer.weight), random.fill_normal(layer.bias);
        random.fill_normal(x), random.fill_normal(before);

        std::vector<float> stored(before.size(), NOT_A_NUMBER), activated = stored;
        std::vector<float> added = before, again = before;
        linear(layer, x.data(), size.rows, stored.data(), Finish::store, {.threads = 1});
        linear(layer, x.data(), size.rows, activated.data(), Finish::gelu, {.threads = 2});
        linear(layer, x.data(), size.rows, added.data(), Finish::add, {.threads = 1});
        linear(layer, x.data(), size.rows, again.data(), Finish::add, {.threads = 3});
        CHECK(added == again);  // whatever the number of threads
        double error = 0;
        for (std::size_t i = 0; i < stored.size(); ++i) {
            const std::size_t row = i / layer.bias.size(), column = i % layer.bias.size();
            double want = double{layer.bias[column]};
            for (std::size_t k = 0; k < static_cast<std::size_t>(size.in); ++k)
                want += double{x[row * static_cast<std::size_t>(size.in) + k]} *
                        double{layer.weight[k * layer.bias.size() + column]};
            for (const double e : {stored[i] - want, activated[i] - gelu_fp64(want),
                                   added[i] - (double{before[i]} + want)})
                if (!(std::abs(e) <= error)) error = std::abs(e);
        }
        CHECK(error <= 2e-5);
    }
}

TEST_CASE("linear layers: 16-bit activations round each result") {
    const LinearWeights layer{1, 2, {1, 1}, {0.0f, 0x1p-10f}};
    const float x = 1;
    std::vector<float> out(2);
    linear(layer, &x, 1, out.data(), Finish::store, {.activations = DType::bf16});
    CHECK(out == std::vector<float>{1, 1});  // 1 + 2^-10 is no bf16 number, but an fp16 number
    linear(layer, &x, 1, out.data(), Finish::store, {.activations = DType::f16});
    CHECK(out == std::vector<float>{1, 1 + 0x1p-10f});
    // x·W + b first becomes 1, then 256 + 1 becomes 256: twice rounded, as in a bf16 network.
    out = {256, 256};
    linear(layer, &x, 1, out.data(), Finish::add, {.activations = DType::bf16});
    CHECK(out == std::vector<float>{256, 256});
}

TEST_CASE("sums of exponentials: blocks keep what a running sum loses") {
    const std::vector<float> logits = power_law_logits(50257, 1.75, 1);
    const LogSums sums = log_sums(logits);
    double exact = 0;
    for (int rank = 50257; rank > 0; --rank) exact += std::pow(rank, -1.75);
    CHECK(sums.fp64 == doctest::Approx(std::log(exact)).epsilon(1e-6));
    CHECK(std::abs(sums.blocks_fp32 - sums.fp64) < 1e-6);
    CHECK(sums.running_fp32 - sums.fp64 < -5e-5);  // too low
    CHECK(log_sums(std::vector<float>{3}).running_fp32 == 3);
    CHECK(log_sums(std::vector<float>(1000, 500)).blocks_fp32 ==
          doctest::Approx(500 + std::log(1000.0)));
}
