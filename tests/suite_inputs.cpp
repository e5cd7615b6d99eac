#include <algorithm>
#include <cmath>

#include "common/random.h"
#include "tests/suite_case.h"

namespace fa::suite {

std::string_view name_of(Pattern pattern) {
    switch (pattern) {
        case Pattern::normal: return "normal";
        case Pattern::rising: return "rising";
        case Pattern::falling: return "falling";
        case Pattern::huge_rising: return "huge rising";
        case Pattern::huge_falling: return "huge falling";
        case Pattern::spikes: return "spikes";
        case Pattern::very_negative: return "very negative";
        case Pattern::equal: return "equal";
        case Pattern::last_channel: return "last channel";
    }
    return "?";
}

float rounded(float value, DType dtype) {
    return with_element_type(
        dtype, [&](auto element) { return static_cast<float>(decltype(element)(value)); });
}

namespace {

/// Scores for the patterns with one channel at work: q = e0/scale, k_j = score_j·e0.
double pattern_score(Pattern pattern, std::int64_t j, std::int64_t len_kv) {
    const double last = std::max<double>(1, static_cast<double>(len_kv - 1));
    const double along = static_cast<double>(j) / last;  // 0 … 1
    switch (pattern) {
        case Pattern::rising: return -1e4 + 2e4 * along;
        case Pattern::falling: return 1e4 - 2e4 * along;
        case Pattern::huge_rising: return -1e37 + 2e37 * along;
        case Pattern::huge_falling: return 1e37 - 2e37 * along;
        default: return 1e4;
    }
}

}  // namespace

Inputs make_inputs(const SuiteCase& c) {
    const AttentionProblem& p = c.problem;
    const std::int64_t d = p.head_dim;
    Inputs inputs;
    inputs.q.resize(idx(p.q_shape().count()));
    inputs.k.resize(idx(p.kv_shape().count()));
    inputs.v.resize(idx(p.kv_shape().count()));
    Random random(c.seed);
    random.fill_normal(inputs.q);
    random.fill_normal(inputs.k);
    random.fill_normal(inputs.v);

    const auto at = [&](std::int64_t row, std::int64_t channel) { return idx(row * d + channel); };
    const std::int64_t query_rows = p.batch * p.heads_q * p.len_q;
    const std::int64_t key_rows = p.batch * p.heads_kv * p.len_kv;
    const float inverse_scale = 1.0f / p.effective_scale();
    switch (c.pattern) {
        case Pattern::normal: break;
        case Pattern::rising:
        case Pattern::falling:
        case Pattern::huge_rising:
        case Pattern::huge_falling:
        case Pattern::equal:
            std::fill(inputs.q.begin(), inputs.q.end(), 0.0f);
            std::fill(inputs.k.begin(), inputs.k.end(), 0.0f);
            for (std::int64_t row = 0; row < query_rows; ++row)
                inputs.q[at(row, 0)] = inverse_scale;
            for (std::int64_t row = 0; row < key_rows; ++row)
                inputs.k[at(row, 0)] =
                    static_cast<float>(pattern_score(c.pattern, row % p.len_kv, p.len_kv));
            break;
        case Pattern::very_negative:
            for (std::int64_t row = 0; row < query_rows; ++row) inputs.q[at(row, 0)] = 100;
            for (std::int64_t row = 0; row < key_rows; ++row)
                inputs.k[at(row, 0)] = -100 * inverse_scale;
            break;
        case Pattern::spikes:
            for (std::int64_t row = 0; row < query_rows; ++row) inputs.q[at(row, 0)] = 10;
            for (std::int64_t row = 0; row < key_rows; ++row) {
                const std::int64_t step = std::max<std::int64_t>(1, p.len_kv / 5);
                inputs.k[at(row, 0)] = row % p.len_kv % step == step / 2 ? 30 * inverse_scale : 0;
            }
            break;
        case Pattern::last_channel:
            std::fill(inputs.q.begin(), inputs.q.end(), 0.0f);
            std::fill(inputs.k.begin(), inputs.k.end(), 0.0f);
            for (std::int64_t row = 0; row < query_rows; ++row)
                inputs.q[at(row, d - 1)] = random.normal();
            for (std::int64_t row = 0; row < key_rows; ++row) {
                inputs.k[at(row, d - 1)] = random.normal();
                for (std::int64_t channel = 0; channel < d; ++channel)
                    inputs.v[at(row, channel)] =
                        static_cast<float>(row % p.len_kv) + static_cast<float>(channel) / 1000;
            }
            break;
    }
    for (auto* values : {&inputs.q, &inputs.k, &inputs.v})
        for (float& value : *values) value = rounded(value, p.dtype);
    return inputs;
}

}  // namespace fa::suite
