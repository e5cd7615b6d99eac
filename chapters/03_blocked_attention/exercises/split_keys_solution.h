#pragma once
/// @file
/// Solution of the exercise on one query and many keys.
///
/// Piece p has the keys from p·n/parts to (p + 1)·n/parts: sizes differ by one at most, and with
/// more pieces than keys some are empty. An empty piece is a new state, which merge() leaves out.
/// This is how decoding is made parallel: with one query there is nothing else to share out.

#include <cstddef>
#include <span>
#include <vector>

#include "chapters/02_online_softmax/online_softmax.h"

namespace fa::exercise {

/// The attention of one query, its keys cut into `parts` pieces.
inline std::vector<float> attend(std::span<const float> scores, std::span<const float> values,
                                 std::size_t head_dim, std::size_t parts,
                                 std::vector<std::size_t>& part_sizes) {
    part_sizes.clear();
    AttentionState merged(head_dim);
    for (std::size_t p = 0; p < parts; ++p) {
        const std::size_t first = p * scores.size() / parts;
        const std::size_t count = (p + 1) * scores.size() / parts - first;
        const std::span<const float> piece = scores.subspan(first, count);
        std::vector<float> weights(piece.begin(), piece.end());
        AttentionState state(head_dim);
        update(state, weights, values.subspan(first * head_dim, count * head_dim));
        merged = merge(merged, state);
        part_sizes.push_back(count);
    }
    return merged.output();
}

}  // namespace fa::exercise
