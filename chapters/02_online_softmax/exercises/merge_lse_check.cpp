#include <span>
#include <string>
#include <vector>

#include "chapters/02_online_softmax/online_softmax.h"
#include "common/exercise.h"
#include FA_EXERCISE

namespace {

using fa::exercise::Finished;
constexpr float INF = std::numeric_limits<float>::infinity();
constexpr std::size_t DIM = 2;

/// By chapter 2's recurrence, all scores at once; channel 0 of V counts the keys, channel 1 is 1.
Finished attend(const std::vector<float>& scores, std::size_t first_key = 0) {
    std::vector<float> values;
    for (std::size_t j = 0; j < scores.size(); ++j) {
        values.push_back(static_cast<float>(first_key + j + 1));
        values.push_back(1);
    }
    fa::AttentionState state(DIM);
    std::vector<float> weights = scores;
    fa::update(state, weights, values);
    return {state.output(), state.softmax.lse()};
}

/// What is wrong with the merge of the two halves of `scores`, cut at `at`.
std::string fault(const std::vector<float>& scores, std::size_t at) {
    const auto cut = scores.begin() + static_cast<std::ptrdiff_t>(at);
    const Finished whole = attend(scores);
    const Finished merged = merge(attend({scores.begin(), cut}), attend({cut, scores.end()}, at));
    if (merged.output.size() != DIM) return fmt::format("{} channels", merged.output.size());
    const bool lse_right = merged.lse == whole.lse ||
                           std::abs(merged.lse - whole.lse) <= 1e-6f * (1 + std::abs(whole.lse));
    if (!lse_right) return fmt::format("LSE {}, should be {}", merged.lse, whole.lse);
    // The rounding of an LSE is multiplied into every weight.
    const float allowed = 1e-5f + 1e-6f * (std::isfinite(whole.lse) ? std::abs(whole.lse) : 0.0f);
    for (std::size_t c = 0; c < DIM; ++c)
        if (!(std::abs(merged.output[c] - whole.output[c]) <= allowed * 8))
            return fmt::format("channel {} is {}, should be {}", c, merged.output[c],
                               whole.output[c]);
    return "";
}

}  // namespace

int main() {
    fa::Exercise exercise("Exercise 2.2: merge from the LSE");
    const std::vector<float> scores{1, 3, 2, 5, 4, 0, 6, -1};
    exercise.invariant(
        "the LSE of both is the logarithm of the sum of both sums",
        [&] {
            const Finished m = merge(attend({1, 3}), attend({2, 5}, 2));
            const float lse = attend({1, 3, 2, 5}).lse;
            return std::abs(m.lse - lse) < 1e-5f ? "" : fmt::format("{}, should be {}", m.lse, lse);
        },
        "ln(e^A + e^B), where A and B are the two LSE.");
    exercise.invariant(
        "wherever a row is cut in two, the merge is the row's attention",
        [&] {
            for (std::size_t at = 1; at < scores.size(); ++at)
                if (std::string found = fault(scores, at); !found.empty())
                    return fmt::format("cut after {}: {}", at, found);
            return std::string();
        },
        "an output that was divided by its own l counts with the share e^(its LSE - LSE of both).");
    exercise.invariant(
        "large scores do not overflow, small ones do not vanish",
        [&] {
            if (std::string found = fault({200, 201, 199, 202}, 2); !found.empty()) return found;
            return fault({-300, -301, -299, -302}, 2);
        },
        "e^200 is infinite in fp32, and e^-300 is 0. Take the larger LSE out of the sum first.");
    exercise.invariant(
        "an empty half changes nothing",
        [&] {
            if (std::string found = fault({1, 3, -INF, -INF}, 2); !found.empty()) return found;
            return fault({-INF, -INF, 1, 3}, 2);
        },
        "its LSE is -inf, and its share e^(-inf - LSE) = 0.");
    exercise.invariant(
        "two empty halves are empty: O = 0 and LSE = -inf",
        [&] {
            return fault({-INF, -INF, -INF, -INF}, 2);
        },
        "-inf - (-inf) is NaN. There is nothing to take out, so treat this case by itself.");
    return exercise.finish();
}
