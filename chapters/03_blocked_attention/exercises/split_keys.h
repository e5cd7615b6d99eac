#pragma once
/// @file
/// Exercise: one query, many keys. Fill in the function and run
///
///     scripts/exercise.sh 3

#include <cstddef>
#include <span>
#include <vector>

#include "chapters/02_online_softmax/online_softmax.h"

namespace fa::exercise {

/// The attention of one query, its keys cut into `parts` pieces of about the same size, each with
/// a state of its own as if another thread had it, and the states merged.
/// @param scores [keys] @param values [keys, head_dim] @param parts >= 1, perhaps more than keys
/// @return [head_dim]
inline std::vector<float> attend(std::span<const float> scores, std::span<const float> values,
                                 std::size_t head_dim, [[maybe_unused]] std::size_t parts,
                                 std::vector<std::size_t>& part_sizes) {
    // One piece. Cut it, and merge with chapter 2's merge(); tell part_sizes the size of each.
    AttentionState state(head_dim);
    std::vector<float> weights(scores.begin(), scores.end());
    update(state, weights, values);
    part_sizes = {scores.size()};
    return state.output();
}

}  // namespace fa::exercise
