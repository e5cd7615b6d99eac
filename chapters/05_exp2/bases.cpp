#include "chapters/05_exp2/bases.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "chapters/05_exp2/folded_scale.h"

namespace fa {
namespace {

constexpr float MINUS_INFINITY = -std::numeric_limits<float>::infinity();

/// factor·score; a masked score stays what it is.
template <class Real>
Real scaled(Real factor, float score) {
    return score == MINUS_INFINITY ? Real{MINUS_INFINITY} : factor * Real{score};
}

template <class Real>
Real largest(std::span<const float> scores, Real factor) {
    Real max = Real{MINUS_INFINITY};
    for (const float score : scores) max = std::fmax(max, scaled(factor, score));
    return max;
}

/// The folded scale with a mistake.
struct FaultyScale {
    float sign, scale_log2;
    FoldedScale right;
    Fault fault;

    FaultyScale(float scale, Fault mistake)
        : sign(FoldedScale(scale).sign),
          scale_log2(FoldedScale(scale).scale_log2),
          right(scale),
          fault(mistake) {
        if (fault == Fault::sign_in_constant) sign = 1, scale_log2 = scale * LOG2_E;
        if (fault == Fault::zero_constant && scale == 0.0f) sign = 1, scale_log2 = 0;
        if (fault == Fault::no_log2_e) scale_log2 = std::fabs(scale);
    }
    float for_maximum(float m) const {
        const bool own = fault == Fault::sign_in_constant || fault == Fault::zero_constant ||
                         fault == Fault::no_log2_e || fault == Fault::one_constant;
        return own ? scale_log2 : right.for_maximum(m);
    }
};

}  // namespace

RowSoftmax softmax_base_e(std::span<const float> scores, float scale) {
    RowSoftmax row;
    row.max = largest(scores, scale);
    const float shift = row.max == MINUS_INFINITY ? 0.0f : row.max;
    for (const float score : scores) {
        const float exponent = scaled(scale, score) - shift;
        row.keys.push_back({score, exponent, std::exp(exponent)});
        row.sum += row.keys.back().weight;
    }
    row.lse = row.max + std::log(row.sum);
    row.lse_base2 = row.lse * LOG2_E;
    return row;
}

RowSoftmax softmax_base_2(std::span<const float> scores, float scale) {
    const FoldedScale folded(scale);
    RowSoftmax row;
    row.max = largest(scores, folded.sign);
    const float base = row.max == MINUS_INFINITY ? 0.0f : row.max;
    const float c = folded.for_maximum(base), shift = base * c;
    for (const float score : scores) {
        const float exponent = std::fma(scaled(folded.sign, score), c, -shift);
        row.keys.push_back({score, exponent, std::exp2(exponent)});
        row.sum += row.keys.back().weight;
    }
    row.lse_base2 = row.max * folded.scale_log2 + std::log2(row.sum);
    row.lse = row.lse_base2 * LN_2;
    return row;
}

std::string_view name_of(Fault fault) {
    switch (fault) {
        case Fault::none: return "none";
        case Fault::sign_in_constant: return "sign of the scale left in the constant";
        case Fault::zero_constant: return "scale 0 makes the constant 0";
        case Fault::fused_correction: return "the correction is a multiply-add, too";
        case Fault::one_constant: return "one constant for all rows, also huge ones";
        case Fault::lse_in_base_2: return "LSE left in base 2";
        case Fault::no_log2_e: return "exp2 for exp, without log2 e";
    }
    return "";
}

OnlineRow online_base_2(std::span<const float> scores, float scale, std::size_t block,
                        Fault fault) {
    const FaultyScale folded(scale, fault);
    float m = MINUS_INFINITY, l = 0, first = 0, last = 0;  // first, last: weights of two keys
    for (std::size_t at = 0; at < scores.size(); at += block) {
        const std::span<const float> some = scores.subspan(at, std::min(block, scores.size() - at));
        const float m_new = std::fmax(m, largest(some, folded.sign));
        const float base = m_new == MINUS_INFINITY ? 0.0f : m_new;
        const float c = folded.for_maximum(base), shift = base * c;
        const float correction =
            std::exp2(fault == Fault::fused_correction ? std::fma(m, c, -shift) : (m - base) * c);
        l *= correction, first *= correction;
        for (std::size_t j = 0; j < some.size(); ++j) {
            const float weight = std::exp2(std::fma(scaled(folded.sign, some[j]), c, -shift));
            l += weight;
            if (at + j == 0) first = weight;
            last = weight;
        }
        m = m_new;
    }
    float lse = m * folded.scale_log2 + std::log2(l);
    if (fault != Fault::lse_in_base_2) lse *= LN_2;
    return {first / l, last / l, lse};
}

OnlineRow online_reference(std::span<const float> scores, float scale) {
    const double max = largest(scores, double{scale});
    const auto weight = [&](float score) { return std::exp(scaled(double{scale}, score) - max); };
    double sum = 0;
    for (const float score : scores) sum += weight(score);
    return {static_cast<float>(weight(scores.front()) / sum),
            static_cast<float>(weight(scores.back()) / sum),
            static_cast<float>(max + std::log(sum))};
}

}  // namespace fa
