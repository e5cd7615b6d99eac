#include "chapters/02_online_softmax/orders.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace fa {
namespace {

void require_states(std::span<const AttentionState> states) {
    if (states.empty()) throw std::invalid_argument("merge: no state to begin with");
}

}  // namespace

std::vector<AttentionState> states_of_blocks(std::span<const float> scores, std::size_t block,
                                             std::span<const float> values, std::size_t head_dim) {
    if (block == 0) throw std::invalid_argument("states_of_blocks: blocks of 0 scores");
    if (values.size() != scores.size() * head_dim)
        throw std::invalid_argument("states_of_blocks: V has the wrong size");
    std::vector<AttentionState> states;
    for (std::size_t first = 0; first < scores.size(); first += block) {
        const auto s = scores.subspan(first, std::min(block, scores.size() - first));
        std::vector<float> weights(s.begin(), s.end());
        states.emplace_back(head_dim);
        update(states.back(), weights, values.subspan(first * head_dim, s.size() * head_dim));
    }
    return states;
}

AttentionState merge_one_by_one(std::span<const AttentionState> states) {
    require_states(states);
    AttentionState result = states.front();
    for (const AttentionState& state : states.subspan(1)) result = merge(result, state);
    return result;
}

AttentionState merge_backwards(std::span<const AttentionState> states) {
    require_states(states);
    AttentionState result = states.back();
    for (std::size_t i = states.size() - 1; i-- > 0;) result = merge(states[i], result);
    return result;
}

// [tree]
AttentionState merge_tree(std::span<const AttentionState> states) {
    require_states(states);
    if (states.size() == 1) return states.front();
    const std::size_t half = states.size() / 2;
    return merge(merge_tree(states.first(half)), merge_tree(states.subspan(half)));
}
// [tree]

MergedState merge_random_pairs(std::span<const AttentionState> states, Random& random) {
    require_states(states);
    std::vector<MergedState> left;
    for (const AttentionState& state : states) left.push_back({state, 0});
    while (left.size() > 1) {
        std::swap(left[random.below(left.size())], left.back());
        const MergedState last = std::move(left.back());
        left.pop_back();
        MergedState& other = left[random.below(left.size())];
        other = {merge(other.state, last.state), std::max(other.depth, last.depth) + 1};
    }
    return left.front();
}

}  // namespace fa
