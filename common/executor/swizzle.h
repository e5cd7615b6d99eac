#pragma once
/// @file
/// Where Hopper's copies and products look for a byte of a box in shared memory.

#include <cstddef>

namespace fa::executor {

/// Rows of 128 bytes: chunk c of 16 bytes of row r lies at c ^ (r % 8). The hardware takes r from
/// the address (bits 7 to 9), which is why boxes begin at multiples of 1024 bytes.
constexpr std::size_t swizzled(std::size_t address) {
    return address ^ (address >> 7 & 7) << 4;
}

/// The alignment of a box.
inline constexpr std::size_t BOX_ALIGNMENT = 1024;

}  // namespace fa::executor
