#pragma once
/// @file
/// Orders in which partial states can be merged. They all give the same result, and parallel
/// attention lives on it: threads, warps and machines each take some of the keys.

#include <cstddef>
#include <span>
#include <vector>

#include "chapters/02_online_softmax/online_softmax.h"
#include "common/random.h"

namespace fa {

/// One state for each `block` scores, the last one for what is left.
/// @param values [scores.size(), head_dim]
/// @throws std::invalid_argument if block is 0 or values is not that large
std::vector<AttentionState> states_of_blocks(std::span<const float> scores, std::size_t block,
                                             std::span<const float> values, std::size_t head_dim);

/// From the first to the last. @throws std::invalid_argument if there is no state, as all of these
AttentionState merge_one_by_one(std::span<const AttentionState> states);

/// From the last to the first.
AttentionState merge_backwards(std::span<const AttentionState> states);

/// One half and the other half, each merged in the same way: depth ⌈log2 n⌉.
AttentionState merge_tree(std::span<const AttentionState> states);

/// A merged state, and through how many merges the farthest of its parts went.
struct MergedState {
    AttentionState state;
    std::size_t depth = 0;
};

/// Two states picked at random, again and again, until one is left.
MergedState merge_random_pairs(std::span<const AttentionState> states, Random& random);

}  // namespace fa
