#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "common/exercise.h"
#include FA_EXERCISE

namespace {

double mean_of(std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The losses of a text's targets: its last few, made hard, cost most.
std::vector<double> losses_of(std::int64_t targets) {
    std::mt19937 engine(7);
    std::uniform_real_distribution<double> uniform(0, 4);
    std::vector<double> losses(static_cast<std::size_t>(targets));
    for (double& loss : losses) loss = uniform(engine);
    for (std::size_t i = losses.size(); i-- > 0 && losses.size() - i < 20;) losses[i] += 8;
    return losses;
}

/// What is wrong with the mean of a text of so many targets, cut into sequences of `context`.
std::string fault(std::int64_t targets, std::int64_t context) {
    const std::vector<double> losses = losses_of(targets);
    std::vector<double> of_sequences;
    for (std::int64_t first = 0; first < targets; first += context)
        of_sequences.push_back(mean_of(std::span(losses).subspan(
            static_cast<std::size_t>(first),
            static_cast<std::size_t>(std::min(context, targets - first)))));
    const double found = fa::exercise::mean_loss(of_sequences, context, targets);
    const double expected = mean_of(losses);
    return std::abs(found - expected) <= 1e-12 * expected
               ? ""
               : fmt::format("{:.6f}, should be {:.6f} ({} targets in sequences of {})", found,
                             expected, targets, context);
}

}  // namespace

int main() {
    fa::Exercise exercise("Exercise 7.6: a mean of means");
    exercise.invariant(
        "sequences of one length weigh the same",
        [] {
            if (std::string found = fault(4096, 1024); !found.empty()) return found;
            return fault(1024, 1024);
        },
        "the mean of their means.");
    exercise.invariant(
        "a shorter last sequence counts by its targets",
        [] {
            const double found = fa::exercise::mean_loss(std::vector<double>{1, 1, 9}, 100, 201);
            return std::abs(found - 209.0 / 201) < 1e-12
                       ? ""
                       : fmt::format(
                             "100 targets at 1, 100 at 1 and one at 9: {:.6f}, should be "
                             "{:.6f}",
                             found, 209.0 / 201);
        },
        "it is a mean over targets. How many does each sequence bring, and what is its sum?");
    exercise.invariant(
        "a text shorter than the context has the loss of its one sequence",
        [] { return fault(300, 1024); },
        "that sequence has as many targets as the text, and not as many as the context.");
    exercise.invariant(
        "the context decides where the text is cut, and nothing else",
        [] {
            for (const std::int64_t context : {1, 7, 64, 1000, 1024, 16615, 16616, 20000})
                if (std::string found = fault(16616, context); !found.empty()) return found;
            return std::string();
        },
        "however it is cut, the sums of all sequences add up to the sum of the text.");
    return exercise.finish();
}
