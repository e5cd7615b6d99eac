#pragma once
/// @file
/// Vectors of floats as wide as the processor's registers, by the vector extension that g++ and
/// clang share, and an exponential for them. The width is chosen when the file is compiled.

#include <bit>
#include <cstdint>
#include <cstring>

#include "common/half.h"

namespace fa::simd {

#if defined(__AVX512F__)
inline constexpr int LANES = 16;
inline constexpr int REGISTERS = 32;
#elif defined(__AVX__)
inline constexpr int LANES = 8;
inline constexpr int REGISTERS = 16;
#elif defined(__aarch64__)
inline constexpr int LANES = 4;
inline constexpr int REGISTERS = 32;
#else
inline constexpr int LANES = 4;
inline constexpr int REGISTERS = 16;
#endif

/// One vector register of fp32.
typedef float Floats __attribute__((vector_size(LANES * sizeof(float))));
typedef std::int32_t Ints __attribute__((vector_size(LANES * sizeof(std::int32_t))));
typedef std::uint32_t Words __attribute__((vector_size(LANES * sizeof(std::uint32_t))));
typedef std::uint16_t Halves __attribute__((vector_size(LANES * sizeof(std::uint16_t))));

/// All lanes the same. Minus zero, not plus: −0 − 0 is −0, but −0 + 0 would be +0.
inline Floats broadcast(float value) {
    return value - Floats{};
}

/// Loads from memory of any alignment.
inline Floats load(const float* from) {
    Floats result;
    std::memcpy(&result, from, sizeof result);
    return result;
}

// [widen]
/// LANES bfloat16 numbers as floats, exactly: they are the upper halves.
inline Floats load(const BFloat16* from) {
    Halves bits;
    std::memcpy(&bits, from, sizeof bits);
    return std::bit_cast<Floats>(__builtin_convertvector(bits, Words) << 16);
}

/// LANES binary16 numbers as floats, exactly: from_float16_bits() without its branches.
inline Floats load(const Float16* from) {
    Halves bits;
    std::memcpy(&bits, from, sizeof bits);
    const Words wide = __builtin_convertvector(bits, Words);
    const Words magnitude = (wide & 0x7fffu) << 13;  // exponent and mantissa in float's places
    const Words exponent = magnitude & (0x1fu << 23);
    const Words normal = magnitude + (112u << 23);    // exponent bias 15 -> 127
    const Words special = magnitude | (0xffu << 23);  // infinity, NaN: all exponent bits set
    // Subnormal: 2^-14 + the number is a sum of floats that is exact, and so is the difference.
    const Words subnormal = std::bit_cast<Words>(std::bit_cast<Floats>(magnitude + (113u << 23)) -
                                                 std::bit_cast<float>(113u << 23));
    const Words finite = exponent == 0 ? subnormal : normal;
    const Words value = exponent == (0x1fu << 23) ? special : finite;
    return std::bit_cast<Floats>(value | ((wide & 0x8000u) << 16));
}
// [widen]

/// Writes a register to memory of any alignment.
inline void store(float* to, Floats value) {
    std::memcpy(to, &value, sizeof value);
}

/// The larger of two, lane by lane; `b` where `a` is NaN.
inline Floats larger(Floats a, Floats b) {
    return a > b ? a : b;
}

// [exp]
/// e^x for x <= 0, lane by lane. Relative error below 2.2e-7 + 3e-9·|x| (6.3e-8·|x| on a processor
/// without fused multiply-add). Exactly 0 for −∞ and for anything below −86.99 (= −125.5·ln 2);
/// never subnormal, which would be slow; NaN for NaN.
///
/// e^x = 2^n · e^f with n = round(x/ln 2) and |f| <= (ln 2)/2. Adding 1.5·2^23 to a small number
/// rounds it to an integer, which then stands in the lowest mantissa bits; with 126 more, those
/// bits are the exponent field of 2^(n−1), and all zero, which is the number 0, for n = −126. The
/// polynomial is 2·e^f, its coefficients such that the largest relative error is least (1.05e-7).
inline Floats exp_nonpositive(Floats x) {
    constexpr float LOWEST = -87.33f;              // n = −126
    constexpr float MAGIC = 12582912.0f + 126.0f;  // 1.5·2^23, plus the exponent bias less 1
    constexpr float LOG2_E = 1.44269504f;
    constexpr float LN2 = 0.693147182f;

    const Floats clamped = LOWEST > x ? broadcast(LOWEST) : x;
    const Floats biased = clamped * LOG2_E + MAGIC;
    const Floats n = biased - MAGIC;
    const Floats f = clamped - n * LN2;
    Floats mantissa = broadcast(2 * 0.008312501013278961f);
    mantissa = mantissa * f + 2 * 0.041890330612659454f;
    mantissa = mantissa * f + 2 * 0.16667115688323975f;
    mantissa = mantissa * f + 2 * 0.499992311000824f;
    mantissa = mantissa * f + 2.0f;
    mantissa = mantissa * f + 2.0f;
    const Floats power_of_two = std::bit_cast<Floats>(std::bit_cast<Ints>(biased) << 23);
    // A product, not an addition to the exponent field: NaN times anything stays NaN.
    return mantissa * power_of_two;
}
// [exp]

// [exp2]
/// 2^x for x <= 127, lane by lane. Relative error below 2.3e-7. Exactly 1 for 0; exactly 0 for −∞
/// and for anything below −125.5; never subnormal; NaN for NaN.
///
/// As exp_nonpositive(), without its two products by log2 e and ln 2: n is x rounded, and f = x − n
/// is exact. The polynomial is 2·2^f for |f| <= 1/2, its largest relative error 9.2e-8.
inline Floats exp2(Floats x) {
    constexpr float LOWEST = -126.0f;              // n = −126
    constexpr float MAGIC = 12582912.0f + 126.0f;  // 1.5·2^23, plus the exponent bias less 1

    const Floats clamped = LOWEST > x ? broadcast(LOWEST) : x;
    const Floats biased = clamped + MAGIC;
    const Floats n = biased - MAGIC;
    const Floats f = clamped - n;
    Floats mantissa = broadcast(0.002652945462614298f);
    mantissa = mantissa * f + 0.019343025982379913f;
    mantissa = mantissa * f + 0.11101467162370682f;
    mantissa = mantissa * f + 0.48044484853744507f;
    mantissa = mantissa * f + 1.3862940073013306f;
    mantissa = mantissa * f + 2.0f;
    const Floats power_of_two = std::bit_cast<Floats>(std::bit_cast<Ints>(biased) << 23);
    return mantissa * power_of_two;
}
// [exp2]

}  // namespace fa::simd
