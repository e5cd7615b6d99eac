#pragma once
/// @file
/// Exercise: a sum may be taken in any order, as long as both operands agree on it. Then no lane
/// needs ldmatrix. Fill in the functions and run
///
///     scripts/exercise.sh 8
///
/// Which lane holds what of A, B and C stands in common/tensor_core_language.h. In all that
/// follows, g = lane / 4 and q = lane % 4.

#include "common/packed.h"
#include "common/tensor_core_language.h"

namespace fa::exercise {

/// S += Q·Kᵀ for 16 queries, 8 keys and 32 channels, by two products; all lanes of a warp call it.
/// A lane brings what it read of three rows, 16 bytes of each: channels 8q … 8q + 7, two in a
/// register, the lower half first.
/// @param upper of query g
/// @param lower of query g + 8
/// @param key   of key g
/// @param S     queries g (S[0], S[1]) and g + 8, keys 2q and 2q + 1
template <class T>
void add_scores([[maybe_unused]] float (&S)[4],
                [[maybe_unused]] const Packed<std::uint32_t, 4>& upper,
                [[maybe_unused]] const Packed<std::uint32_t, 4>& lower,
                [[maybe_unused]] const Packed<std::uint32_t, 4>& key) {
    // multiply_add<T>(S, a, b0, b1) adds 16 channels; b0 and b1 may be any of the lane's registers,
    // if a matches.
}

/// Scores for 16 keys are two calls of add_scores(). Which key is given to it as number `g` of 8?
/// In the end each lane shall hold weights for the keys 4q … 4q + 3.
/// @param half 0 for the first call, 1 for the second
inline int key_of(int half, int g) {
    return 8 * half + g;  // in order: lane 0 would hold keys 0, 1, 8 and 9
}

/// O += P·V for 16 queries, the 16 keys and 8 channels, by one product.
/// @param left   weights where the first call left scores
/// @param right  where the second did
/// @param values channel g of keys 4q … 4q + 3, two in a register: here V lies transposed in
///               memory, and a lane reads 8 bytes of a row
/// @param O      queries g and g + 8, channels 2q and 2q + 1
template <class T>
void add_values([[maybe_unused]] float (&O)[4], [[maybe_unused]] const float (&left)[4],
                [[maybe_unused]] const float (&right)[4],
                [[maybe_unused]] const Packed<std::uint32_t, 2>& values) {
    // pack<T>(low, high) rounds two floats into one register.
}

}  // namespace fa::exercise
