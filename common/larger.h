#pragma once
/// @file
/// The largest of some errors, in which a NaN must not get lost.

#include <cmath>
#include <concepts>

namespace fa {

/// The larger of two; NaN if one is NaN. std::max lets a NaN pass or not depending on the order.
template <std::floating_point Real>
Real larger_or_nan(Real a, Real b) {
    return std::isnan(a) || a > b ? a : b;  // b also if it is NaN
}

}  // namespace fa
