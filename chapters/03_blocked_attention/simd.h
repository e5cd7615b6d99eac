#pragma once
/// @file
/// Vectors of floats as wide as the processor's registers, by the vector extension that g++ and
/// clang share, and an exponential for them. The width is chosen when the file is compiled.

#include <bit>
#include <cstdint>
#include <cstring>

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

typedef float Floats __attribute__((vector_size(LANES * sizeof(float))));
typedef std::int32_t Ints __attribute__((vector_size(LANES * sizeof(std::int32_t))));

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
inline void store(float* to, Floats value) {
    std::memcpy(to, &value, sizeof value);
}

/// The larger of two, lane by lane; `b` where `a` is NaN.
inline Floats larger(Floats a, Floats b) {
    return a > b ? a : b;
}

// [exp]
/// e^x for x <= 0, lane by lane, to about one unit in the last place. Exactly 0 for x = −∞ (and for
/// anything below −87.33, whose exponential is not a normal fp32 number); NaN for NaN.
///
/// e^x = 2^n · e^f with n = round(x/ln 2) and |f| <= (ln 2)/2. Adding 1.5·2^23 to a small number
/// rounds it to an integer, which then stands in the lowest mantissa bits; with 127 more, those
/// bits are the exponent field of 2^n. The coefficients minimise the largest relative error
/// (3.1e-9).
inline Floats exp_nonpositive(Floats x) {
    constexpr float LOWEST = -87.33f;              // e^LOWEST is just above 2^-126
    constexpr float MAGIC = 12582912.0f + 127.0f;  // 1.5·2^23, plus the exponent bias
    constexpr float LOG2_E = 1.44269504f;
    constexpr float LN2_HIGH = 0.693359375f;  // 12 bits: n·LN2_HIGH is exact
    constexpr float LN2_LOW = -2.12194440e-4f;

    const Floats clamped = x < LOWEST ? broadcast(LOWEST) : x;
    const Floats biased = clamped * LOG2_E + MAGIC;
    const Floats n = biased - MAGIC;
    Floats f = clamped - n * LN2_HIGH;
    f = f - n * LN2_LOW;
    Floats q = broadcast(0.0013814519625157118f);
    q = q * f + 0.00836874358355999f;
    q = q * f + 0.04166839271783829f;
    q = q * f + 0.1666652113199234f;
    q = q * f + 0.4999999403953552f;
    const Floats mantissa = q * (f * f) + (f + 1.0f);
    const Floats power_of_two = std::bit_cast<Floats>(std::bit_cast<Ints>(biased) << 23);
    // A product, not an addition to the exponent field: NaN times anything stays NaN.
    return x < LOWEST ? Floats{} : mantissa * power_of_two;
}
// [exp]

}  // namespace fa::simd
