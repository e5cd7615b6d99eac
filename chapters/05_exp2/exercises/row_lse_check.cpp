#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "common/exercise.h"
#include FA_EXERCISE

namespace {

constexpr double INF = std::numeric_limits<double>::infinity();

/// By the definition, in fp64.
double exact_lse(const std::vector<float>& products, float scale) {
    double max = -INF, sum = 0;
    for (const float p : products) max = std::fmax(max, static_cast<double>(scale) * p);
    for (const float p : products) sum += std::exp(static_cast<double>(scale) * p - max);
    return products.empty() ? -INF : max + std::log(sum);
}

std::string fault(const std::vector<float>& products, float scale) {
    const double exact = exact_lse(products, scale);
    const double found = fa::exercise::row_lse(products, scale);
    // A few roundings of numbers as large as the LSE, and of a sum of some hundred terms.
    if (found == exact || std::abs(found - exact) <= 2e-6 * (std::abs(exact) + 5)) return "";
    return fmt::format("{}, should be {} (scale {}, {} keys)", found, exact, scale,
                       products.size());
}

std::vector<float> random_products(float deviation) {
    std::mt19937 engine(5);
    std::normal_distribution<float> normal(0, deviation);
    std::vector<float> products(200);
    for (float& product : products) product = normal(engine);
    return products;
}

}  // namespace

int main() {
    fa::Exercise exercise("Exercise 5.1: forget no sign");
    exercise.invariant(
        "equal scores of 0: LSE is ln n",
        [] {
            return fault({0, 0, 0, 0, 0, 0, 0, 0}, 0.125f);
        },
        "ln x = ln 2 · log2 x, and log2 of 8 is 3.");
    exercise.invariant(
        "one key: LSE is its scaled score", [] { return fault({40}, 0.125f); },
        "the maximum was multiplied with log2 e, too: what is taken back to base e is the whole.");
    exercise.invariant(
        "a row of keys has the LSE of the definition, scaled a little or much",
        [] {
            for (const float scale : {0.125f, 1.0f, 3.0f})
                if (std::string found = fault(random_products(8), scale); !found.empty())
                    return found;
            return std::string();
        },
        "2^(c s - c m) with c = scale · log2 e: log2 e belongs into it once.");
    exercise.invariant(
        "a negative scale: no weight exceeds 1, nothing overflows",
        [] {
            if (std::string found = fault({-600, 0, 600}, -1); !found.empty()) return found;
            return fault(random_products(80), -3);
        },
        "with c < 0 the largest exponent is that of the smallest product. Let the sign go with the "
        "products, so that their maximum is the right one.");
    exercise.invariant(
        "scale 0: every key weighs the same",
        [] {
            return fault({5, -3, 100}, 0);
        },
        "all scaled scores are 0, whatever the products.");
    exercise.invariant(
        "a row without keys: -inf, whatever the scale",
        [] {
            for (const float scale : {0.125f, -0.125f, 0.0f})
                if (std::string found = fault({}, scale); !found.empty()) return found;
            return std::string();
        },
        "the maximum of nothing is -inf, and -inf · 0 is NaN: let the constant be any number but "
        "0.");
    return exercise.finish();
}
