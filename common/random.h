#pragma once
/// @file
/// Seeded random inputs. The generator and the transform are spelled out here, not taken from
/// `<random>`'s distributions, whose results differ between standard libraries: a seed names the
/// same numbers everywhere (up to the last bit of the C library's log and cos, which rounding to
/// float all but hides).

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <type_traits>

namespace fa {

/// Random numbers from one seed.
class Random {
  public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}

    /// Uniform in (0, 1], 53 bits.
    double uniform() { return static_cast<double>((engine_() >> 11) + 1) * 0x1p-53; }

    /// Normal, mean 0 and standard deviation 1 (Box–Muller, the cosine half).
    float normal() {
        const double radius = std::sqrt(-2.0 * std::log(uniform()));
        return static_cast<float>(radius * std::cos(2.0 * std::numbers::pi * uniform()));
    }

    /// Uniform integer in [0, bound), bound > 0. The bias of the remainder is below bound/2^64.
    std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }

    /// Fills a range of floats (or BFloat16, Float16) with standard-normal values times `factor`.
    template <class Range>
    void fill_normal(Range&& range, float factor = 1.0f) {
        for (auto& element : range)
            element = static_cast<std::remove_reference_t<decltype(element)>>(normal() * factor);
    }

  private:
    std::mt19937_64 engine_;
};

}  // namespace fa
