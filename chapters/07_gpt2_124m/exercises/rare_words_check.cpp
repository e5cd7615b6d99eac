#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "common/exercise.h"
#include FA_EXERCISE

namespace {

constexpr std::size_t TILE = 512;  // as chapter 7 cuts GPT-2's vocabulary

/// By the definition, in fp64.
double exact_log_sum(const std::vector<float>& logits) {
    const double max = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - max);
    return max + std::log(sum);
}

/// What is wrong with the sum of these logits, cut into tiles.
std::string fault(const std::vector<float>& logits, std::size_t tile = TILE) {
    fa::exercise::RunningSum running;
    for (std::size_t i = 0; i < logits.size(); i += tile)
        add(running, std::span(logits).subspan(i, std::min(tile, logits.size() - i)));
    const double found = log_sum(running), exact = exact_log_sum(logits);
    // 2^-20, what 32 words may lose beside a large one, with a little room, and a rounding of the
    // largest logit.
    if (std::abs(found - exact) <= 1.1e-6 + 1e-7 * std::abs(exact)) return "";
    return fmt::format("{:.8f}, should be {:.8f} ({} words, {} to a tile)", found, exact,
                       logits.size(), tile);
}

constexpr std::size_t RARE = 65536;

/// Words of weight 2^-25, which are 2^-9 together.
std::vector<float> rare_words() {
    return std::vector<float>(RARE, static_cast<float>(-25 * std::log(2.0)));
}

/// A tile with a word of weight 1 and none that matters beside it, and then rare words.
std::vector<float> frequent_word_apart() {
    std::vector<float> logits(TILE, -100);
    logits[0] = 0;
    const std::vector<float> rare = rare_words();
    logits.insert(logits.end(), rare.begin(), rare.end());
    return logits;
}

/// One word of weight 1 among rare ones.
std::vector<float> frequent_word_among() {
    std::vector<float> logits = rare_words();
    logits[RARE / 2] = 0;
    return logits;
}

/// Probabilities that fall as 1/rank^1.5, as those of words do about, in any order.
std::vector<float> power_law() {
    std::vector<float> logits;
    for (int rank = 1; rank <= 50257; ++rank)
        logits.push_back(static_cast<float>(-1.5 * std::log(static_cast<double>(rank))));
    std::mt19937 engine(7);
    std::shuffle(logits.begin(), logits.end(), engine);
    return logits;
}

}  // namespace

int main() {
    fa::Exercise exercise("Exercise 7.4: rare words");
    exercise.invariant(
        "a few words, all in one tile",
        [] {
            return fault({1, 2, 3, -1, 0});
        },
        "ln(e^1 + e^2 + e^3 + e^-1 + e^0).");
    exercise.invariant(
        "a maximum that comes late corrects what was summed before",
        [] {
            std::vector<float> rising(2000);
            for (std::size_t i = 0; i < rising.size(); ++i)
                rising[i] = 0.01f * static_cast<float>(i);
            if (std::string found = fault(rising); !found.empty()) return found;
            return fault({-300, -301, 200, 201, -5}, 2);
        },
        "the sum is of e^(logit - max), with the maximum that it has now (chapter 2).");
    exercise.invariant(
        "rare words count: each of them is negligible, and all of them are not",
        [] { return fault(frequent_word_apart()); },
        "1 + 2^-25 is 1 in fp32, 65,536 times over. Sum up a tile by itself before you add it.");
    exercise.invariant(
        "rare words count in the same tile as a frequent one, too",
        [] {
            if (std::string found = fault(frequent_word_among()); !found.empty()) return found;
            return fault(power_law());
        },
        "a tile's sum that has reached 1 is deaf as well: let few words share an fp32 sum, by "
        "short "
        "pieces or by many sums side by side.");
    exercise.invariant(
        "however the vocabulary is cut: words one by one, in small tiles, or all in one",
        [] {
            for (const std::size_t tile : {1u, 7u, 100u, 512u, 100000u})
                for (const std::vector<float>& logits :
                     {frequent_word_apart(), frequent_word_among(), power_law()})
                    if (std::string found = fault(logits, tile); !found.empty()) return found;
            return std::string();
        },
        "the sum over all tiles must be finer than fp32, and no fp32 sum may run over many words.");
    return exercise.finish();
}
