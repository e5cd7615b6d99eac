#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "common/exercise.h"
#include FA_EXERCISE

namespace {

constexpr std::size_t KEYS = 1000, DIM = 3;

struct Row {
    std::vector<float> scores, values;
};

Row random_row(std::size_t keys) {
    std::mt19937 engine(7);
    std::normal_distribution<float> normal;
    Row row{std::vector<float>(keys), std::vector<float>(keys * DIM)};
    for (float& score : row.scores) score = 5 * normal(engine);
    for (float& value : row.values) value = normal(engine);
    return row;
}

std::string fault(const Row& row, std::size_t parts) {
    const fa::TwoPassResult exact = fa::two_passes(row.scores, row.values, DIM);
    std::vector<std::size_t> sizes;
    const std::vector<float> output =
        fa::exercise::attend(row.scores, row.values, DIM, parts, sizes);
    for (std::size_t c = 0; c < DIM; ++c)
        if (output.size() != DIM || !(std::abs(output[c] - exact.output[c]) <= 1e-5))
            return fmt::format("{} parts: channel {} is off", parts, c);
    return "";
}

std::vector<std::size_t> sizes_of(std::size_t keys, std::size_t parts) {
    std::vector<std::size_t> sizes;
    const Row row = random_row(keys);
    fa::exercise::attend(row.scores, row.values, DIM, parts, sizes);
    return sizes;
}

}  // namespace

int main() {
    fa::Exercise exercise("Exercise 3.5: one query, many keys");
    exercise.invariant(
        "with one part, the result is the row's attention",
        [] { return fault(random_row(KEYS), 1); },
        "update() wants the scores of a piece, which it overwrites, and the rows of V with them.");
    exercise.invariant(
        "there are as many parts as were asked for, and together they have every key",
        [] {
            for (const std::size_t parts : std::vector<std::size_t>{2, 7, 64}) {
                const std::vector<std::size_t> sizes = sizes_of(KEYS, parts);
                const std::size_t sum = std::accumulate(sizes.begin(), sizes.end(), std::size_t{});
                if (sizes.size() != parts || sum != KEYS)
                    return fmt::format("{} parts asked for, {} made, with {} of {} keys", parts,
                                       sizes.size(), sum, KEYS);
            }
            return std::string();
        },
        "piece p ends where piece p + 1 begins; the last one ends with the last key.");
    exercise.invariant(
        "no part has more than one key more than another",
        [] {
            const std::vector<std::size_t> sizes = sizes_of(KEYS, 64);
            const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
            return *most - *least <= 1 ? "" : fmt::format("{} to {} keys", *least, *most);
        },
        "the slowest thread decides. p * keys / parts, rounded down, is a good place to cut.");
    exercise.invariant(
        "the result does not depend on the number of parts",
        [] {
            for (const std::size_t parts : std::vector<std::size_t>{2, 3, 7, 64, 1000})
                if (std::string found = fault(random_row(KEYS), parts); !found.empty())
                    return found;
            return std::string();
        },
        "each piece has its own maximum: merge() knows how to bring them together.");
    exercise.invariant(
        "parts without keys, and keys without weight, do no harm",
        [] {
            if (std::string found = fault(random_row(5), 8); !found.empty()) return found;
            Row row = random_row(40);
            std::fill(row.scores.begin(), row.scores.begin() + 20,
                      -std::numeric_limits<float>::infinity());
            return fault(row, 4);
        },
        "a new state is the neutral element of merge(): an empty piece needs no case of its own.");
    return exercise.finish();
}
