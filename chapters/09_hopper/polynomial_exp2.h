#pragma once
/// @file
/// 2^x without the special function unit.

#include "common/hopper_language.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

// [polynomial]
/// 2^x for x ≤ 0 or not much above, by multiply-adds: the whole part of x goes into the exponent,
/// a polynomial of degree 3 takes care of the rest, 0 ≤ f < 1. Off by 9e-5 at most, relatively,
/// which is a fortieth of a step of bf16. From −127 on downwards it is 0, and of NaN, too: it is
/// here to be measured, not to be used.
__device__ __forceinline__ float polynomial_exp2(float x) {
    constexpr float INTEGERS = 12582912.0f;  // 1.5 · 2^23: a sum with it is a whole number
    const float clamped = fmaxf(x, -127.0f);
    const float whole = add_downwards(clamped, INTEGERS);
    const float f = clamped - (whole - INTEGERS);
    const float p = fmaf(f, fmaf(f, fmaf(f, 0.07711909f, 0.22756439f), 0.69514614f), 1.0f);
    return float_from_bits((float_bits(whole) << 23) + float_bits(p));
}
// [polynomial]

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
