#pragma once
/// @file
/// Solution of the exercise on the LSE of a row.
///
/// log2 of the sum of exponentials is c m' + log2 l; ln is ln 2 times that, and it is the whole
/// that is multiplied. The sign goes with the products, not into the constant: the number to
/// subtract is the largest exponent, and with c < 0 that would belong to the smallest product. With
/// scale 0 the products become 0 and c stays 1: all weights are 1, and an empty row is −∞ · 1 and
/// not the NaN that −∞ · 0 is.

#include <cmath>
#include <limits>
#include <span>

#include "chapters/05_exp2/folded_scale.h"

namespace fa::exercise {

/// ln Σ e^(scale · product) over the products q·k of one query.
inline float row_lse(std::span<const float> products, float scale) {
    const FoldedScale folded(scale);
    float max = -std::numeric_limits<float>::infinity();
    for (const float product : products) max = std::fmax(max, folded.sign * product);
    float sum = 0.0f;
    for (const float product : products)
        sum += std::exp2(folded.scale_log2 * (folded.sign * product - max));
    return (folded.scale_log2 * max + std::log2(sum)) * LN_2;
}

}  // namespace fa::exercise
