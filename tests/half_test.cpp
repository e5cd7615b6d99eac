/// @file
/// Conversions between fp32 and the 16-bit types: every 16-bit pattern, every rounding boundary,
/// and Eigen's types as an independent second opinion.

#include "common/half.h"

#include <doctest/doctest.h>

#include <Eigen/Core>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

using namespace fa;

namespace {

constexpr float INF = std::numeric_limits<float>::infinity();

struct BFloat16Format {
    static constexpr std::uint16_t INFINITY_BITS = 0x7f80;
    static std::uint16_t to_bits(float x) { return to_bfloat16_bits(x); }
    static float from_bits(std::uint16_t x) { return from_bfloat16_bits(x); }
    static std::uint16_t eigen_bits(float x) { return Eigen::bfloat16(x).value; }
    static float eigen_value(std::uint16_t x) {
        return static_cast<float>(Eigen::numext::bit_cast<Eigen::bfloat16>(x));
    }
};

struct Float16Format {
    static constexpr std::uint16_t INFINITY_BITS = 0x7c00;
    static std::uint16_t to_bits(float x) { return to_float16_bits(x); }
    static float from_bits(std::uint16_t x) { return from_float16_bits(x); }
    static std::uint16_t eigen_bits(float x) {
        return Eigen::numext::bit_cast<std::uint16_t>(Eigen::half(x));
    }
    static float eigen_value(std::uint16_t x) {
        return static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(x));
    }
};

/// Number of patterns for which the format fails what `holds` demands.
template <class Format, class Predicate>
int failures(Predicate holds) {
    int count = 0;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
        count += !holds(static_cast<std::uint16_t>(bits));
    return count;
}

template <class Format>
bool is_nan_pattern(std::uint16_t bits) {
    return (bits & 0x7fff) > Format::INFINITY_BITS;
}

template <class Format>
void check_format() {
    CHECK(failures<Format>([](std::uint16_t bits) {  // value -> bits -> value
              const float value = Format::from_bits(bits);
              if (is_nan_pattern<Format>(bits)) {
                  const std::uint16_t back = Format::to_bits(value);
                  return std::isnan(value) && is_nan_pattern<Format>(back) &&
                         (back & 0x8000) == (bits & 0x8000);
              }
              return Format::to_bits(value) == bits;
          }) == 0);

    CHECK(failures<Format>([](std::uint16_t bits) {  // the value itself
              const float ours = Format::from_bits(bits), eigens = Format::eigen_value(bits);
              return std::isnan(ours) ? std::isnan(eigens)
                                      : std::bit_cast<std::uint32_t>(ours) ==
                                            std::bit_cast<std::uint32_t>(eigens);
          }) == 0);

    // Every boundary: half way between two neighbours goes to the even one, the floats next to half
    // way go to the nearer one. The step above the largest finite value stands for infinity.
    CHECK(failures<Format>([](std::uint16_t bits) {
              const std::uint16_t magnitude = bits & 0x7fff;
              const std::uint16_t sign = bits & 0x8000;
              if (magnitude >= Format::INFINITY_BITS) return true;
              const auto next = static_cast<std::uint16_t>(magnitude + 1);
              const double low = static_cast<double>(Format::from_bits(magnitude));
              const double high = next == Format::INFINITY_BITS
                                      ? 2 * low - static_cast<double>(Format::from_bits(
                                                      static_cast<std::uint16_t>(magnitude - 1)))
                                      : static_cast<double>(Format::from_bits(next));
              const float middle = static_cast<float>((low + high) / 2);
              const auto convert = [sign](float x) {
                  return Format::to_bits(sign != 0 ? -x : x) ^ sign;
              };
              const std::uint16_t even = magnitude % 2 == 0 ? magnitude : next;
              return convert(middle) == even &&
                     convert(std::nextafter(middle, 0.0f)) == magnitude &&
                     convert(std::nextafter(middle, INF)) == next;
          }) == 0);

    // A sample of all floats against Eigen; the odd step reaches every low bit.
    int differ = 0;
    for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 4099) {
        const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
        const std::uint16_t ours = Format::to_bits(value), eigens = Format::eigen_bits(value);
        differ += std::isnan(value) ? !is_nan_pattern<Format>(ours) : ours != eigens;
    }
    CHECK(differ == 0);

    // Every NaN stays one, the ones whose mantissa has low bits only included.
    int lost = 0;
    for (std::uint32_t mantissa = 1; mantissa < 0x800000; mantissa += mantissa < 0x20000 ? 1 : 127)
        for (const std::uint32_t sign : {0u, 0x80000000u}) {
            const std::uint16_t bits =
                Format::to_bits(std::bit_cast<float>(sign | 0x7f800000u | mantissa));
            lost += !is_nan_pattern<Format>(bits) || (bits >> 15) != (sign >> 31);
        }
    CHECK(lost == 0);

    CHECK(Format::to_bits(INF) == Format::INFINITY_BITS);
    CHECK(Format::to_bits(-INF) == (Format::INFINITY_BITS | 0x8000));
    CHECK(Format::to_bits(0.0f) == 0);
    CHECK(Format::to_bits(-0.0f) == 0x8000);
}

}  // namespace

TEST_CASE("bfloat16: all patterns, all rounding boundaries, NaN") {
    check_format<BFloat16Format>();
}

TEST_CASE("float16: all patterns, all rounding boundaries, NaN") {
    check_format<Float16Format>();
}

TEST_CASE("bfloat16: known values") {
    CHECK(to_bfloat16_bits(1.0f) == 0x3f80);
    CHECK(to_bfloat16_bits(-2.0f) == 0xc000);
    CHECK(to_bfloat16_bits(0x1.01p0f) == 0x3f80);  // half way: to even
    CHECK(to_bfloat16_bits(0x1.03p0f) == 0x3f82);
    CHECK(to_bfloat16_bits(std::numeric_limits<float>::max()) == 0x7f80);  // rounds up to infinity
    CHECK(from_bfloat16_bits(0x7f7f) == 0x1.fep127f);                      // largest finite
    CHECK(from_bfloat16_bits(0x0001) == 0x1p-133f);                        // smallest subnormal
}

TEST_CASE("float16: known values") {
    CHECK(to_float16_bits(1.0f) == 0x3c00);
    CHECK(to_float16_bits(65504.0f) == 0x7bff);
    CHECK(to_float16_bits(65519.996f) == 0x7bff);
    CHECK(to_float16_bits(65520.0f) == 0x7c00);
    CHECK(to_float16_bits(0x1p-24f) == 0x0001);
    CHECK(to_float16_bits(0x1p-25f) == 0x0000);  // half of the smallest: to even
    CHECK(to_float16_bits(0x1.000002p-25f) == 0x0001);
    CHECK(to_float16_bits(0x1p-14f) == 0x0400);        // smallest normal
    CHECK(from_float16_bits(0x03ff) == 0x1.ff8p-15f);  // largest subnormal
    CHECK(to_float16_bits(std::numeric_limits<float>::denorm_min()) == 0);
}

TEST_CASE("conversions are usable at compile time") {
    static_assert(static_cast<float>(BFloat16(1.5f)) == 1.5f);
    static_assert(static_cast<float>(Float16(-0.25f)) == -0.25f);
    static_assert(to_float16_bits(0x1p-24f) == 1);
    static_assert(BFloat16{}.bits == 0 && Float16{}.bits == 0);
    CHECK(sizeof(BFloat16) == 2);
    CHECK(sizeof(Float16) == 2);
}
