#pragma once
/// @file
/// The recurrence, written down step by step: for the tables of the program and for pictures.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "chapters/02_online_softmax/online_softmax.h"

namespace fa {

/// What one block of scores did to the state.
struct TraceStep {
    std::vector<float> scores;
    std::vector<float> weights;  ///< exp(score − m_new)
    std::vector<float> values;   ///< [scores.size(), head_dim]
    AttentionState before, after;
    float correction = 0;  ///< exp(m_old − m_new), by which l and acc were rescaled
};

/// Runs over the scores, `block` at a time; the last block may be shorter.
/// @param values [scores.size(), head_dim]
/// @throws std::invalid_argument if block is 0 or values is not that large
std::vector<TraceStep> trace_online_softmax(std::span<const float> scores, std::size_t block,
                                            std::span<const float> values, std::size_t head_dim);

/// One object per step with scores, weights, m_old, m_new, l_old, l_new, correction, values,
/// acc_old and acc_new. −∞ (m_old of the first step) is null in the JSON text.
nlohmann::ordered_json to_json(std::span<const TraceStep> trace);

}  // namespace fa
