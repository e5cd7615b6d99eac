#pragma once
/// @file
/// Exercise: the LSE of a row, with scale and log2 e folded into one constant. Fill in the function
/// and run
///
///     scripts/exercise.sh 5

#include <cmath>
#include <limits>
#include <span>

#include "chapters/05_exp2/folded_scale.h"

namespace fa::exercise {

/// ln Σ e^(scale · product) over the products q·k of one query, −∞ if there are none, by powers of
/// two. Of FoldedScale, you may want to know how it comes to its members.
/// @param scale any finite number, negative ones and 0 included
inline float row_lse(std::span<const float> products, float scale) {
    const float c = scale * LOG2_E;
    float max = -std::numeric_limits<float>::infinity();
    for (const float product : products) max = std::fmax(max, product);
    float sum = 0.0f;
    for (const float product : products) sum += std::exp2(c * (product - max));
    return c * max + std::log2(sum);  // in which base, and for which signs?
}

}  // namespace fa::exercise
