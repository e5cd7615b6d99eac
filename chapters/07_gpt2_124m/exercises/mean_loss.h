#pragma once
/// @file
/// Exercise: the loss of a text from the losses of its sequences. Fill in the function and run
///
///     scripts/exercise.sh 7

#include <cstdint>
#include <span>

namespace fa::exercise {

/// The mean loss over all targets of a text. It was cut into sequences of `context` targets; the
/// last one is shorter where `context` does not divide `targets`.
/// @param sequence_losses the mean loss of each sequence, over its own targets
/// @param targets         of the whole text
inline double mean_loss(std::span<const double> sequence_losses,
                        [[maybe_unused]] std::int64_t context,
                        [[maybe_unused]] std::int64_t targets) {
    // The mean of the means. Popular, and another number.
    double sum = 0;
    for (const double loss : sequence_losses) sum += loss;
    return sum / static_cast<double>(sequence_losses.size());
}

}  // namespace fa::exercise
