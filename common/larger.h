#pragma once
/// @file
/// The largest of some errors, in which a NaN must not get lost.

#include <cmath>

namespace fa {

/// The larger of two; NaN if one is NaN. std::max lets a NaN pass or not depending on the order.
inline double larger_or_nan(double a, double b) {
    return std::isnan(a) || a > b ? a : b;  // b also if it is NaN
}

}  // namespace fa
