#pragma once
/// @file
/// Solution of the exercise on the order of sums.
///
/// A product adds up 16 channels. Lane q has its hand on four of them, columns 2q, 2q + 1, 2q + 8
/// and 2q + 9 of A, and the same rows of B. Nothing says that column 2q must be channel 2q: if A
/// and B agree, any channel may take its place. So the lane lays down the eight that it has, four
/// in each product, and the four lanes of a row have all 32.
///
/// The weights come out where the keys were put in: columns 2q and 2q + 1 of two accumulators. To
/// let a lane weigh four neighbours, those columns must be the keys 4q, 4q + 1 of the one and
/// 4q + 2, 4q + 3 of the other. Then its registers of B are what lies side by side in a row of Vᵀ.
/// (With m16n8k16 one can have this or the natural order. FlashAttention-3 needs it: for 8-bit
/// weights the columns of an accumulator are not those that an operand wants, and so the keys are
/// permuted, and V's rows with them, rather than weights moved between lanes; section 3.3.)

#include "common/packed.h"
#include "common/tensor_core_language.h"

namespace fa::exercise {

/// S += Q·Kᵀ for 16 queries, 8 keys and 32 channels.
template <class T>
void add_scores(float (&S)[4], const Packed<std::uint32_t, 4>& upper,
                const Packed<std::uint32_t, 4>& lower, const Packed<std::uint32_t, 4>& key) {
    for (int n = 0; n < 4; n += 2) {
        const std::uint32_t a[4] = {upper[n], lower[n], upper[n + 1], lower[n + 1]};
        multiply_add<T>(S, a, key[n], key[n + 1]);
    }
}

/// The key that is number `g` of 8 in one half of 16.
inline int key_of(int half, int g) {
    return 4 * (g / 2) + 2 * half + g % 2;
}

/// O += P·V for 16 queries, the 16 keys and 8 channels.
template <class T>
void add_values(float (&O)[4], const float (&left)[4], const float (&right)[4],
                const Packed<std::uint32_t, 2>& values) {
    const std::uint32_t a[4] = {pack<T>(left[0], left[1]), pack<T>(left[2], left[3]),
                                pack<T>(right[0], right[1]), pack<T>(right[2], right[3])};
    multiply_add<T>(O, a, values[0], values[1]);
}

}  // namespace fa::exercise
