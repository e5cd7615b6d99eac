#pragma once
/// @file
/// Softmax done wrong, to see what the care is for: without the maximum, and without the guard
/// against −∞ − (−∞).

#include <span>
#include <vector>

#include "chapters/02_online_softmax/online_softmax.h"
#include "common/dtype.h"

namespace fa {

/// Largest finite number of a type.
double largest_finite(DType dtype);

/// The largest x in fp32 whose exp(x), rounded to `dtype`, is finite. Found by bisection over the
/// floats, not computed from a formula.
float last_finite_exp(DType dtype);

/// A softmax in which every result is rounded to `dtype`.
struct RoundedSoftmax {
    float sum = 0;
    std::vector<float> weights;  ///< normalised
};

/// exp(s) / Σ exp(s), the maximum not subtracted.
RoundedSoftmax softmax_without_max(std::span<const float> scores, DType dtype);

/// exp(s − m) / Σ exp(s − m).
RoundedSoftmax softmax_with_max(std::span<const float> scores, DType dtype);

/// The recurrence as it stands in papers, m_new = max(m_old, …), l_new = l_old·exp(m_old − m_new) +
/// …, with nothing done about m_new = −∞.
SoftmaxState unguarded_online_softmax(std::span<const float> scores, std::size_t block);

}  // namespace fa
