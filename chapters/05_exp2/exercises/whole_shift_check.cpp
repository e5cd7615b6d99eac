#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "common/exercise.h"
#include FA_EXERCISE

namespace {

using fa::exercise::State;
constexpr float INF = std::numeric_limits<float>::infinity();
constexpr std::size_t BLOCK = 4;

struct Run {
    State state;
    std::vector<float> corrections;
};

Run run(const std::vector<float>& scores) {
    Run result;
    for (std::size_t i = 0; i < scores.size(); i += BLOCK)
        result.corrections.push_back(
            update(result.state, std::span(scores).subspan(i, std::min(BLOCK, scores.size() - i))));
    return result;
}

std::vector<float> random_scores(float centre) {
    std::mt19937 engine(5);
    std::normal_distribution<float> normal(centre, 6);
    std::vector<float> scores(400);
    for (float& score : scores) score = normal(engine);
    return scores;
}

/// log2 Σ 2^score against fp64. A sum of 400 numbers in fp32 errs by at most 400·2^-24 of itself,
/// which is 3.4e-5 in its logarithm, and usually by a twentieth of that.
std::string fault(const std::vector<float>& scores) {
    double max = -INF, sum = 0;
    for (const float score : scores) max = std::fmax(max, static_cast<double>(score));
    if (max != -INF)
        for (const float score : scores) sum += std::exp2(static_cast<double>(score) - max);
    const double exact = max + std::log2(sum);
    const State state = run(scores).state;
    const double found =
        state.sum == 0 ? -INF : state.shift + std::log2(static_cast<double>(state.sum));
    if (found == exact || (max == -INF && found == -INF) || std::abs(found - exact) <= 1e-5)
        return "";
    return fmt::format("log2 of the sum is {}, should be {} (shift {}, sum {})", found, exact,
                       state.shift, state.sum);
}

}  // namespace

int main() {
    fa::Exercise exercise("Exercise 5.3: a whole-number shift");
    exercise.invariant(
        "the sum is right", [] { return fault(random_scores(0)); },
        "sum is the sum of 2^(score - shift), with the shift that the state holds now.");
    exercise.invariant(
        "every correction is a power of two, and exact",
        [] {
            for (const float correction : run(random_scores(0)).corrections) {
                int exponent = 0;
                if (correction != 0 && std::frexp(correction, &exponent) != 0.5f)
                    return fmt::format("a correction of {}", correction);
            }
            return std::string();
        },
        "2^n is exact for a whole n: what must be whole is the shift.");
    exercise.invariant(
        "the shift is at least the largest score, and less than 1 above it",
        [] {
            for (const float centre : {0.0f, 50.0f, -50.0f}) {
                const std::vector<float> scores = random_scores(centre);
                const float largest = *std::max_element(scores.begin(), scores.end());
                const float shift = run(scores).state.shift;
                if (!(shift >= largest && shift < largest + 1))
                    return fmt::format("shift {}, largest score {}", shift, largest);
            }
            return std::string();
        },
        "round up, also below zero: truncating -3.5 gives -3, and 3.5 gives 3.");
    exercise.invariant(
        "no weight exceeds 1: large scores do not overflow, small ones do not vanish",
        [] {
            if (std::string found = fault(random_scores(1000)); !found.empty()) return found;
            return fault(random_scores(-1000));
        },
        "round the maximum before you compute weights with it.");
    exercise.invariant(
        "blocks of -inf change nothing",
        [] {
            for (const std::vector<float>& scores :
                 {std::vector<float>{-INF, -INF, -INF, -INF, 1.5f, 3},
                  {1.5f, 3, 2, 1, -INF, -INF},
                  {-INF, -INF}})
                if (std::string found = fault(scores); !found.empty()) return found;
            return std::string();
        },
        "as long as the shift is -inf, subtract 0.");
    return exercise.finish();
}
