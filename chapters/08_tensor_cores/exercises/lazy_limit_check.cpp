#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "common/exercise.h"
#include FA_EXERCISE

namespace {

using fa::exercise::LazyRow;
using fa::exercise::SLACK;
using Scores = std::vector<float>;
constexpr float INF = std::numeric_limits<float>::infinity();
constexpr std::size_t BLOCK = 4;

struct Run {
    LazyRow row;
    int moves = 0;          ///< of the reference
    int looks = 0;          ///< blocks for which the quick look was not enough
    float farthest = -INF;  ///< the most that a score was above the reference when weighed
};

Run run(const Scores& scores) {
    Run result;
    for (std::size_t i = 0; i < scores.size(); i += BLOCK) {
        const auto block = std::span(scores).subspan(i, std::min(BLOCK, scores.size() - i));
        const float before = result.row.reference;
        result.looks += fa::exercise::needs_a_look(block, result.row.limit);
        take_in(result.row, block);
        result.moves += result.row.reference != before;
        for (const float score : block)
            result.farthest = std::fmax(result.farthest, score - result.row.reference);
    }
    return result;
}

/// log2 Σ 2^score against fp64. A sum of 400 numbers in fp32 errs by at most 400·2^-24 of itself,
/// which is 3.4e-5 in its logarithm, and usually by a twentieth of that.
std::string fault(const Scores& scores) {
    double max = -INF, sum = 0;
    for (const float score : scores) max = std::fmax(max, static_cast<double>(score));
    if (max != -INF)
        for (const float score : scores) sum += std::exp2(static_cast<double>(score) - max);
    const double exact = max + std::log2(sum);
    const LazyRow row = run(scores).row;
    const double found =
        row.sum == 0 ? -INF : row.reference + std::log2(static_cast<double>(row.sum));
    if (found == exact || (max == -INF && found == -INF) || std::abs(found - exact) <= 1e-5)
        return "";
    return fmt::format("log2 of the sum is {}, should be {} (reference {}, sum {})", found, exact,
                       row.reference, row.sum);
}

Scores random_scores(float centre) {
    std::mt19937 engine(8);
    std::normal_distribution<float> normal(centre, 6);
    Scores scores(400);
    for (float& score : scores) score = normal(engine);
    return scores;
}

/// 400 scores from `first` on, each `step` above the last, give or take 1.
Scores rising(float first, float step) {
    Scores scores;
    for (int i = 0; i < 400; ++i)
        scores.push_back(first + step * static_cast<float>(i) + static_cast<float>(i % 3));
    return scores;
}

/// The right sum, and no weight above 2^SLACK.
std::string out_of_hand(const Scores& scores) {
    if (const float farthest = run(scores).farthest; !(farthest <= SLACK))
        return fmt::format("a score that was {} above the reference", farthest);
    return fault(scores);
}

}  // namespace

int main() {
    fa::Exercise exercise("Exercise 8.5: when to look closely");
    exercise.invariant(
        "the sum is right", [] { return fault(random_scores(0)); },
        "sum is the sum of 2^(score - reference), with the reference that the row holds now.");
    exercise.invariant(
        "a rise by less than the slack leaves the reference where it is",
        [] {
            for (const Scores& scores : {Scores{3, 1, 2, 0, 10.9f, 4, 5, 1, -7, 9, 2, 3},
                                         {-30, -31, -32, -33, -22.1f, -29, -28, -50}})
                if (const int moves = run(scores).moves; moves != 1)
                    return fmt::format("it moved {} times, the first score included", moves);
            return std::string();
        },
        "compare with reference + SLACK. The first block sets the reference, to 3 or to -30 here.");
    exercise.invariant(
        "where the limit is not negative, only a score that reaches it is looked at",
        [] {
            const int looks = run({3, 1, 2, 0, 10.9f, 4, 5, 1, -7, -90, -2, -3, 11, 1, 1, 1}).looks;
            return looks == 2 ? "" : fmt::format("{} of 4 blocks were, instead of 2", looks);
        },
        "when the reference moves, the limit moves with it: to the bits of reference + SLACK.");
    exercise.invariant(
        "a slow rise moves the reference once for every 8, and no weight passes 2^8",
        [] {
            const Scores scores = rising(1, 0.25f);
            // By 102 in all; and one more move for the first block.
            if (const int moves = run(scores).moves; moves < 10 || moves > 13)
                return fmt::format("{} moves", moves);
            return out_of_hand(scores);
        },
        "move to the block's largest score, and multiply the sum by 2^(old - new).");
    exercise.invariant(
        "scores far below zero do not vanish", [] { return out_of_hand(rising(-5000, 0)); },
        "the reference begins at the lowest number there is: so must the search for the largest.");
    exercise.invariant(
        "the sum does not overflow where scores are negative",
        [] {
            for (const Scores& scores :
                 {rising(-5000, 2), rising(-500, 2), {-900, -900, -900, -900, -400, -700, -1, -50}})
                if (std::string found = out_of_hand(scores); !found.empty()) return found;
            return std::string();
        },
        "read as integers, negative floats are in reverse order: -50 is above -1. Is there any "
        "limit below zero that does not miss a score?");
    exercise.invariant(
        "blocks of -inf change nothing, at the start or later",
        [] {
            for (const Scores& scores : {Scores{-INF, -INF, -INF, -INF, 1, 3},
                                         {1, 3, 2, 0, -INF, -INF, -INF, -INF, 2},
                                         {-INF, -INF}})
                if (std::string found = out_of_hand(scores); !found.empty()) return found;
            return std::string();
        },
        "-inf - (-inf) is NaN. Before the first score there is a reference already, and -inf is "
        "not above it.");
    return exercise.finish();
}
