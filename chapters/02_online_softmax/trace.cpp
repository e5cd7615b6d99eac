#include "chapters/02_online_softmax/trace.h"

#include <algorithm>
#include <stdexcept>

namespace fa {

std::vector<TraceStep> trace_online_softmax(std::span<const float> scores, std::size_t block,
                                            std::span<const float> values, std::size_t head_dim) {
    if (block == 0) throw std::invalid_argument("trace: blocks of 0 scores");
    if (values.size() != scores.size() * head_dim)
        throw std::invalid_argument("trace: V has " + std::to_string(values.size()) +
                                    " elements, not " + std::to_string(scores.size() * head_dim));
    std::vector<TraceStep> trace;
    AttentionState state(head_dim);
    for (std::size_t first = 0; first < scores.size(); first += block) {
        const std::size_t count = std::min(block, scores.size() - first);
        const auto s = scores.subspan(first, count);
        const auto v = values.subspan(first * head_dim, count * head_dim);

        TraceStep step{.scores = {s.begin(), s.end()},
                       .weights = {s.begin(), s.end()},
                       .values = {v.begin(), v.end()},
                       .before = state,
                       .after = state};
        step.correction = update(state, step.weights, v);
        step.after = state;
        trace.push_back(std::move(step));
    }
    return trace;
}

nlohmann::ordered_json to_json(std::span<const TraceStep> trace) {
    auto steps = nlohmann::ordered_json::array();
    for (const TraceStep& step : trace)
        steps.push_back({{"scores", step.scores},
                         {"weights", step.weights},
                         {"m_old", step.before.softmax.max},
                         {"m_new", step.after.softmax.max},
                         {"l_old", step.before.softmax.sum},
                         {"l_new", step.after.softmax.sum},
                         {"correction", step.correction},
                         {"values", step.values},
                         {"acc_old", step.before.acc},
                         {"acc_new", step.after.acc}});
    return steps;
}

}  // namespace fa
