#include <functional>
#include <random>
#include <string>
#include <vector>

#include "common/executor/bank_counter.h"
#include "common/exercise.h"
#include FA_EXERCISE

namespace {

using Words = std::vector<std::uint32_t>;

Words access(const std::function<std::uint32_t(std::uint32_t)>& word_of) {
    Words words;
    for (std::uint32_t lane = 0; lane < 32; ++lane) words.push_back(word_of(lane));
    return words;
}

std::string differ(const Words& words, int expected) {
    const int found = fa::exercise::clocks(words);
    return found == expected ? "" : fmt::format("{} clocks, should be {}", found, expected);
}

/// What the executor counts for the same access.
int counted(const Words& words) {
    fa::executor::BankCounter counter(words.size());
    for (std::size_t lane = 0; lane < words.size(); ++lane)
        counter.access(lane, 4 * words[lane], 4);
    counter.end_of_phase(0);
    fa::executor::Counters counters{};
    counter.add_to(counters);
    return static_cast<int>(counters.shared_wavefronts);
}

}  // namespace

int main() {
    fa::Exercise exercise("Exercise 4.1: banks");
    exercise.invariant(
        "neighbouring words lie in different banks: one clock",
        [] { return differ(access([](std::uint32_t lane) { return 100 + lane; }), 1); },
        "word w is in bank w modulo 32, wherever the 32 words begin.");
    exercise.invariant(
        "a column of a tile with rows of 64 words lies in one bank: 32 clocks",
        [] { return differ(access([](std::uint32_t lane) { return 64 * lane; }), 32); },
        "count for each bank how many words it has to give out; the slowest bank decides.");
    exercise.invariant(
        "one word of padding spreads the column over all banks: one clock",
        [] { return differ(access([](std::uint32_t lane) { return 65 * lane; }), 1); },
        "65 lane modulo 32 is lane modulo 32.");
    exercise.invariant(
        "lanes that want the same word are served together",
        [] {
            if (std::string found = differ(access([](std::uint32_t) { return 7u; }), 1);
                !found.empty())
                return "all lanes, one word: " + found;
            // Four lanes to a row, as in the plain kernel: eight words, all in one bank.
            return differ(access([](std::uint32_t lane) { return 64 * (lane / 4); }), 8);
        },
        "count different words, not lanes.");
    exercise.invariant(
        "any access takes the clocks that the executor counts",
        [] {
            std::mt19937 engine(4);
            for (const std::uint32_t range : {16u, 64u, 200u, 5000u})
                for (int n = 0; n < 50; ++n) {
                    const Words words = access([&](std::uint32_t) {
                        return std::uniform_int_distribution<std::uint32_t>(0, range)(engine);
                    });
                    if (std::string found = differ(words, counted(words)); !found.empty())
                        return fmt::format("words of 0 to {}: {}", range, found);
                }
            return std::string();
        },
        "some banks may have nothing to do, and others several words that several lanes want.");
    return exercise.finish();
}
