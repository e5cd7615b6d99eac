#pragma once
/// @file
/// The two 16-bit floating-point types, stored as bits and converted in software, so that host code
/// behaves the same with every compiler and matches what the GPU's types (`__half`,
/// `__nv_bfloat16`, bit for bit the same layout) hold.

#include <bit>
#include <cstdint>

namespace fa {

/// float -> bfloat16 bits, round to nearest even. NaN stays NaN (quiet, sign kept): plain rounding
/// would carry a NaN with a long mantissa over into infinity.
constexpr std::uint16_t to_bfloat16_bits(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
    // Adding 0x7fff rounds up anything above half; the lowest kept bit turns ties to even.
    return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/// bfloat16 bits -> float, exact.
constexpr float from_bfloat16_bits(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// float -> IEEE binary16 bits, round to nearest even, subnormals and infinities included. NaN
/// stays NaN (quiet, sign kept).
constexpr std::uint16_t to_float16_bits(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000u;
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
    // 65520 = 0x477ff000 is half way between the largest finite half, 65504, and the next step.
    if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {  // below 2^-14: a subnormal half, in units of 2^-24
        // Adding 0.5 lines the value's 2^-24 digit up with the float's last bit; the addition
        // itself rounds to nearest even.
        const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
        return static_cast<std::uint16_t>(sign |
                                          (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
    }
    const std::uint32_t rebased = magnitude - (112u << 23);  // exponent bias 127 -> 15
    return static_cast<std::uint16_t>(sign | ((rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13));
}

/// IEEE binary16 bits -> float, exact.
constexpr float from_float16_bits(std::uint16_t bits) {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00u)  // infinity or NaN: widen the mantissa, keep the all-ones exponent
        return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
    if (magnitude < 0x400u) {  // zero or subnormal: units of 2^-24
        const float value = static_cast<float>(magnitude) * 0x1p-24f;
        return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
    }
    return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
}

/// bfloat16: the upper half of a float. 8 exponent bits (the range of fp32), 8 significant bits.
struct BFloat16 {
    std::uint16_t bits = 0;
    BFloat16() = default;
    constexpr explicit BFloat16(float value) : bits(to_bfloat16_bits(value)) {}
    constexpr explicit operator float() const { return from_bfloat16_bits(bits); }
};

/// IEEE binary16 ("half"). 5 exponent bits (largest finite value 65504), 11 significant bits.
struct Float16 {
    std::uint16_t bits = 0;
    Float16() = default;
    constexpr explicit Float16(float value) : bits(to_float16_bits(value)) {}
    constexpr explicit operator float() const { return from_float16_bits(bits); }
};

}  // namespace fa
