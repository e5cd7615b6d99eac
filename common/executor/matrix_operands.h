#pragma once
/// @file
/// The operands of a warp's product: where they lie in shared memory, and as floats.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "common/executor/swizzle.h"

namespace fa::executor {

/// The types of A and B.
enum class ElementType { bfloat16, float16 };

/// The widest D of the instructions.
inline constexpr int MOST_N = 256;

/// What the low half of a matrix descriptor says (PTX ISA, "Matrix Descriptor Format").
struct MatrixPlace {
    std::size_t address, leading;
    explicit MatrixPlace(std::uint32_t descriptor)
        : address((descriptor & 0x3fff) * 16), leading((descriptor >> 16 & 0x3fff) * 16) {}

    /// @return what is wrong with the place, or nothing
    std::string problem(bool by_rows, int columns) const {
        if (by_rows && (address & ~std::size_t{127}) % BOX_ALIGNMENT != 0)
            return "a matrix by rows does not begin in the first row of eight, at a multiple of "
                   "1024 bytes and at most 112 further";
        if (!by_rows && address % BOX_ALIGNMENT != 0)
            return "a matrix by columns does not begin at a multiple of 1024 bytes";
        if (by_rows && address % 32 != 0)
            return "a matrix by rows does not begin at a multiple of 16 columns";
        if (!by_rows && columns > 64 && (leading == 0 || leading % BOX_ALIGNMENT != 0))
            return "the boxes of a matrix by columns are not a multiple of 1024 bytes apart";
        return {};
    }
};

/// Calls f(row, chunk, offset) for all chunks of 16 bytes of a matrix, 16 deep. By rows there are
/// `size` rows of 2 chunks; by columns 16 rows of size / 8 chunks.
template <class F>
void for_each_chunk(const MatrixPlace& place, bool by_rows, int size, F&& f) {
    const auto rows = static_cast<std::size_t>(by_rows ? size : 16);
    const auto chunks = static_cast<std::size_t>(by_rows ? 2 : size / 8);
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < chunks; ++c)
            f(r, c, swizzled(place.address + r * 128 + c / 8 * place.leading + c % 8 * 16));
}

/// 8 elements as floats.
inline void widen(float* to, const std::byte* from, ElementType type) {
    std::uint16_t bits[8];
    std::memcpy(bits, from, sizeof bits);
    std::uint32_t wide[8];
    if (type == ElementType::bfloat16) {
        for (int i = 0; i < 8; ++i) wide[i] = static_cast<std::uint32_t>(bits[i]) << 16;
        std::memcpy(to, wide, sizeof wide);
        return;
    }
    // The exponent is moved by a multiplication, which takes care of subnormals; infinities and NaN
    // lack the upper bits of theirs then. All of it without a branch, for vectors.
    for (int i = 0; i < 8; ++i) {
        const std::uint32_t magnitude = bits[i] & 0x7fffu;
        const float value = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
        const std::uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0u;
        wide[i] = std::bit_cast<std::uint32_t>(value) | special |
                  static_cast<std::uint32_t>(bits[i] & 0x8000u) << 16;
    }
    std::memcpy(to, wide, sizeof wide);
}

/// A from shared memory, by rows.
inline void read_a(float (&a)[16][16], std::uint32_t descriptor, const std::byte* shared,
                   ElementType type) {
    for_each_chunk(MatrixPlace(descriptor), true, 16,
                   [&](std::size_t r, std::size_t c, std::size_t offset) {
                       widen(&a[r][8 * c], shared + offset, type);
                   });
}

/// A from the registers of 32 lanes: register n of lane 4g + q holds columns 2q, 2q + 1 (and 8 more
/// for n ≥ 2) of row g (and 8 more for odd n).
inline void read_a_registers(float (&a)[16][16],
                             const std::array<std::array<std::uint32_t, 4>, 32>& registers,
                             ElementType type) {
    alignas(16) std::uint16_t bits[16][16];
    for (std::size_t lane = 0; lane < 32; ++lane)
        for (std::size_t n = 0; n < 4; ++n)
            for (std::size_t e = 0; e < 2; ++e)
                bits[lane / 4 + n % 2 * 8][lane % 4 * 2 + n / 2 * 8 + e] =
                    static_cast<std::uint16_t>(registers[lane][n] >> 16 * e);
    for (int r = 0; r < 16; ++r)
        for (int c = 0; c < 16; c += 8)
            widen(&a[r][c], reinterpret_cast<const std::byte*>(&bits[r][c]), type);
}

/// B, 16 × n.
inline void read_b(float* b, std::uint32_t descriptor, bool b_is_rows, int n,
                   const std::byte* shared, ElementType type) {
    const auto width = static_cast<std::size_t>(n);
    if (b_is_rows) {
        for_each_chunk(MatrixPlace(descriptor), false, n,
                       [&](std::size_t k, std::size_t c, std::size_t offset) {
                           widen(b + k * width + 8 * c, shared + offset, type);
                       });
        return;
    }
    for_each_chunk(MatrixPlace(descriptor), true, n,
                   [&](std::size_t column, std::size_t c, std::size_t offset) {
                       float values[8];
                       widen(values, shared + offset, type);
                       for (std::size_t i = 0; i < 8; ++i)
                           b[(8 * c + i) * width + column] = values[i];
                   });
}

/// D += A·B, 16 × n, 16 deep. Products are exact; their sum over the depth, and D, are fp32.
inline void multiply_add_matrices(float* d, const float (&a)[16][16], const float* b, int n) {
    constexpr int COLUMNS = 16;
    for (int column = 0; column < n; column += COLUMNS)
        for (int r = 0; r < 16; r += 2) {
            float first[COLUMNS] = {}, second[COLUMNS] = {};
            for (int k = 0; k < 16; ++k)
                for (int i = 0; i < COLUMNS; ++i) {
                    first[i] += a[r][k] * b[k * n + column + i];
                    second[i] += a[r + 1][k] * b[k * n + column + i];
                }
            for (int i = 0; i < COLUMNS; ++i) {
                d[r * n + column + i] += first[i];
                d[(r + 1) * n + column + i] += second[i];
            }
        }
}

}  // namespace fa::executor
