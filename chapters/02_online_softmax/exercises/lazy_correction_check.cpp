#include <cmath>
#include <string>
#include <vector>

#include "common/exercise.h"
#include FA_EXERCISE

namespace {

using fa::exercise::LazyState;
constexpr float INF = std::numeric_limits<float>::infinity();

LazyState run(const std::vector<float>& scores, std::size_t block) {
    LazyState state;
    for (std::size_t i = 0; i < scores.size(); i += block)
        update(state, std::span(scores).subspan(i, std::min(block, scores.size() - i)));
    return state;
}

/// ln Σ exp(score), in fp64.
double exact_lse(const std::vector<float>& scores) {
    double max = -INF, sum = 0;
    for (const float score : scores) max = std::fmax(max, static_cast<double>(score));
    if (max == -INF) return max;
    for (const float score : scores) sum += std::exp(static_cast<double>(score) - max);
    return max + std::log(sum);
}

std::string fault(const std::vector<float>& scores, std::size_t block) {
    const LazyState state = run(scores, block);
    const double lse =
        state.sum == 0 ? -INF : state.shift + std::log(static_cast<double>(state.sum));
    const double exact = exact_lse(scores);
    if (lse == exact || std::abs(lse - exact) <= 1e-5) return "";
    return fmt::format("LSE {}, should be {} (shift {}, sum {})", lse, exact, state.shift,
                       state.sum);
}

/// Scores that rise slowly: sawtooth of 2 on a slope of `slope` a score.
std::vector<float> rising(int count, float slope) {
    std::vector<float> scores;
    for (int i = 0; i < count; ++i)
        scores.push_back(slope * static_cast<float>(i) + static_cast<float>(i % 3));
    return scores;
}

}  // namespace

int main() {
    fa::Exercise exercise("Exercise 2.3: lazy corrections");
    exercise.invariant(
        "the sum is right, whatever was subtracted",
        [] {
            return fault({1, 3, 2, 5, 4, 0, 6, -1}, 2);
        },
        "sum must be the sum of exp(score - shift) with the shift that the state holds now.");
    exercise.invariant(
        "scores that rise by less than the slack cost no rescaling",
        [] {
            const LazyState state = run({1, 3, 2, 5, 4, 0, 6, -1}, 2);
            return state.rescalings == 0 ? "" : fmt::format("{} rescalings", state.rescalings);
        },
        "the first block sets the shift, 3 here; 6 is only 3 above it. The first block is no "
        "rescaling: nothing was summed up before it.");
    exercise.invariant(
        "a slow rise by 100 costs at most 100 / slack rescalings, and the sum stays right",
        [] {
            const std::vector<float> scores = rising(1000, 0.1f);
            const LazyState state = run(scores, 10);
            if (state.rescalings > 13 || state.rescalings < 10)
                return fmt::format("{} rescalings", state.rescalings);
            return fault(scores, 10);
        },
        "move the shift to the block's maximum once that is more than SLACK above it, and multiply "
        "the sum by exp(old shift - new shift).");
    exercise.invariant(
        "no weight exceeds e^slack: the sum cannot overflow",
        [] {
            if (std::string found = fault({0, 0, 200, 201}, 2); !found.empty()) return found;
            return fault({0, 7.9f, 15.8f, 95, 200, 3}, 1);
        },
        "decide with the maximum of the new block before you compute its weights.");
    exercise.invariant(
        "blocks of -inf change nothing, at the start or later",
        [] {
            for (const std::vector<float>& scores :
                 {std::vector<float>{-INF, -INF, 1, 3}, {1, 3, -INF, -INF, 2, 5}, {-INF, -INF}})
                if (std::string found = fault(scores, 2); !found.empty()) return found;
            return std::string();
        },
        "as long as the shift is -inf, subtract 0: -inf - (-inf) is NaN.");
    exercise.invariant(
        "scores far below zero do not vanish",
        [] {
            return fault({-500, -501, -499, -502}, 2);
        },
        "the first score above -inf sets the shift, however small it is.");
    return exercise.finish();
}
