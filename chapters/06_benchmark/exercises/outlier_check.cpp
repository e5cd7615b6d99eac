#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "common/exercise.h"
#include FA_EXERCISE

namespace {

using Repetitions = std::vector<fa::exercise::Repetition>;

std::string differ(const Repetitions& repetitions, double expected) {
    const double found = fa::exercise::seconds_per_call(repetitions);
    return std::abs(found - expected) <= 1e-12 * expected
               ? ""
               : fmt::format("{:.6g} s, should be {:.6g} s", found, expected);
}

}  // namespace

int main() {
    fa::Exercise exercise("Exercise 6.7: one repetition went wrong");
    exercise.invariant(
        "repetitions that agree: the time of one call",
        [] {
            if (std::string found = differ({{3, 100}}, 0.03); !found.empty()) return found;
            return differ({{2, 4}, {1, 2}, {4, 8}}, 0.5);
        },
        "a repetition's seconds are those of all its calls.");
    exercise.invariant(
        "one repetition that was interrupted moves nothing",
        [] {
            for (const double lost : {10.0, 1e3, 1e6})
                if (std::string found =
                        differ({{1.0, 1}, {1.1, 1}, {lost, 1}, {1.2, 1}, {1.1, 1}}, 1.1);
                    !found.empty())
                    return fmt::format("one of five took {} s: {}", lost, found);
            return std::string();
        },
        "the one in the middle of the sorted list has as many above it as below.");
    exercise.invariant(
        "the order in which they were run does not matter",
        [] {
            Repetitions repetitions{{5, 1}, {1, 1}, {4, 1}, {2, 1}, {3, 1}};
            std::mt19937 engine(6);
            for (int n = 0; n < 20; ++n) {
                std::shuffle(repetitions.begin(), repetitions.end(), engine);
                if (std::string found = differ(repetitions, 3); !found.empty()) return found;
            }
            return std::string();
        },
        "sort before you look for the middle.");
    exercise.invariant(
        "an even number of them: half-way between the two in the middle",
        [] {
            return differ({{1, 1}, {9, 1}, {2, 1}, {4, 1}}, 3);
        },
        "there is no single one in the middle. Do not take the upper one.");
    exercise.invariant(
        "a repetition counts once, however many calls it had",
        [] {
            return differ({{500, 1000}, {0.2, 1}, {0.3, 1}}, 0.3);
        },
        "an interruption hits a repetition, and not each of its calls.");
    exercise.invariant(
        "a repetition of many calls is long, and not slow",
        [] {
            return differ({{100, 1000}, {0.2, 1}, {0.3, 1}}, 0.2);
        },
        "sort the times of a call, not the seconds of the repetition.");
    return exercise.finish();
}
