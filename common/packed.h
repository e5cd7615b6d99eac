#pragma once
/// @file
/// Several elements that travel by one load or store instruction.

namespace fa {

/// N elements of type T, aligned to their total size, which must be a power of two.
template <class T, int N>
struct alignas(sizeof(T) * N) Packed {
    T element[N];

    constexpr T& operator[](int i) { return element[i]; }
    constexpr const T& operator[](int i) const { return element[i]; }
};

}  // namespace fa
