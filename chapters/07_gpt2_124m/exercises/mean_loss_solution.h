#pragma once
/// @file
/// Solution of the exercise on the mean loss.
///
/// A mean is a sum over a number. So each sequence's mean is first taken back to the sum over its
/// own targets, the sums are added, and their number is that of all targets. Equal sequences weigh
/// the same either way, which is why the wrong mean passes wherever the context divides the text.
/// In the mean of means a short last sequence counts as much as a whole one.

#include <algorithm>
#include <cstdint>
#include <span>

namespace fa::exercise {

/// The mean loss over all targets of a text.
inline double mean_loss(std::span<const double> sequence_losses, std::int64_t context,
                        std::int64_t targets) {
    double sum = 0;
    std::int64_t left = targets;
    for (const double loss : sequence_losses) {
        const std::int64_t length = std::min(context, left);
        sum += loss * static_cast<double>(length);
        left -= length;
    }
    return sum / static_cast<double>(targets);
}

}  // namespace fa::exercise
