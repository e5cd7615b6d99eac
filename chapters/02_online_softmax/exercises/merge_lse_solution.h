#pragma once
/// @file
/// Solution of the exercise on merging from the LSE.
///
/// LSE = ln(e^A + e^B) overflows when A or B is above 88.7, and a score may be anything. So the
/// larger of the two is taken out, as in every softmax: LSE = max + ln(e^(A − max) + e^(B − max)).
/// Each output is weighted with the share e^(A − LSE) that its half has in the whole; both are at
/// most 1. Two empty halves have no maximum to take out, and −∞ − (−∞) would be NaN.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace fa::exercise {

/// The output of one query over some keys, and the logarithm of the sum of their exponentials.
/// Without keys: zeros, and −∞.
struct Finished {
    std::vector<float> output;
    float lse = -std::numeric_limits<float>::infinity();
};

/// What the query would have got from the keys of both.
inline Finished merge(const Finished& a, const Finished& b) {
    const float largest = std::max(a.lse, b.lse);
    if (largest == -std::numeric_limits<float>::infinity()) return a;  // nothing and nothing
    Finished merged;
    merged.lse = largest + std::log(std::exp(a.lse - largest) + std::exp(b.lse - largest));
    const float share_a = std::exp(a.lse - merged.lse), share_b = std::exp(b.lse - merged.lse);
    for (std::size_t c = 0; c < a.output.size(); ++c)
        merged.output.push_back(share_a * a.output[c] + share_b * b.output[c]);
    return merged;
}

}  // namespace fa::exercise
