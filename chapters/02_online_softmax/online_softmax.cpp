#include "chapters/02_online_softmax/online_softmax.h"

#include <cmath>
#include <stdexcept>
#include <string>

namespace fa {
namespace {

constexpr float MINUS_INFINITY = -std::numeric_limits<float>::infinity();

void require_size(const char* what, std::size_t got, std::size_t wanted) {
    if (got != wanted)
        throw std::invalid_argument(std::string("online softmax: ") + what + " has " +
                                    std::to_string(got) + " elements, not " +
                                    std::to_string(wanted));
}

// [shift]
/// What to subtract before exp: m, or 0 as long as every score was −∞. Then exp(−∞ − 0) = 0 is
/// right, where −∞ − (−∞) would be NaN.
float shift_of(float max) {
    return max == MINUS_INFINITY ? 0.0f : max;
}
// [shift]

}  // namespace

float SoftmaxState::lse() const {
    return sum == 0.0f ? MINUS_INFINITY : max + std::log(sum);
}

// [update]
float update(SoftmaxState& state, std::span<float> scores) {
    const float old_max = state.max;
    // fmax passes over a NaN; exp does not, so that l becomes NaN and remains it.
    for (const float score : scores) state.max = std::fmax(state.max, score);

    const float shift = shift_of(state.max);
    const float correction = std::exp(old_max - shift);
    float block_sum = 0.0f;
    for (float& score : scores) block_sum += score = std::exp(score - shift);
    state.sum = state.sum * correction + block_sum;
    return correction;
}
// [update]

// [update_with_v]
float update(AttentionState& state, std::span<float> scores, std::span<const float> values) {
    const std::size_t head_dim = state.acc.size();
    require_size("V", values.size(), scores.size() * head_dim);
    const float correction = update(state.softmax, scores);

    for (float& a : state.acc) a *= correction;
    for (std::size_t j = 0; j < scores.size(); ++j)
        for (std::size_t c = 0; c < head_dim; ++c)
            state.acc[c] += scores[j] * values[j * head_dim + c];  // the score is a weight by now
    return correction;
}

std::vector<float> AttentionState::output() const {
    std::vector<float> output(acc.size(), 0.0f);
    if (softmax.sum == 0.0f) return output;  // 0/0: no weight to share out
    for (std::size_t c = 0; c < acc.size(); ++c) output[c] = acc[c] / softmax.sum;
    return output;
}
// [update_with_v]

// [merge]
SoftmaxState merge(const SoftmaxState& a, const SoftmaxState& b) {
    const float max = std::fmax(a.max, b.max), shift = shift_of(max);
    return {max, a.sum * std::exp(a.max - shift) + b.sum * std::exp(b.max - shift)};
}

AttentionState merge(const AttentionState& a, const AttentionState& b) {
    require_size("acc", b.acc.size(), a.acc.size());
    AttentionState merged(a.acc.size());
    merged.softmax = merge(a.softmax, b.softmax);
    const float shift = shift_of(merged.softmax.max);
    const float scale_a = std::exp(a.softmax.max - shift),
                scale_b = std::exp(b.softmax.max - shift);
    for (std::size_t c = 0; c < merged.acc.size(); ++c)
        merged.acc[c] = a.acc[c] * scale_a + b.acc[c] * scale_b;
    return merged;
}
// [merge]

TwoPassResult two_passes(std::span<const float> scores, std::span<const float> values,
                         std::size_t head_dim) {
    require_size("V", values.size(), scores.size() * head_dim);
    TwoPassResult result{-std::numeric_limits<double>::infinity(), 0,
                         std::vector<double>(head_dim, 0.0)};
    for (const float score : scores) result.max = std::fmax(result.max, double{score});
    const double shift = std::isinf(result.max) && result.max < 0 ? 0.0 : result.max;
    for (const float score : scores) result.sum += std::exp(double{score} - shift);
    if (result.sum == 0) return result;
    for (std::size_t j = 0; j < scores.size(); ++j)
        for (std::size_t c = 0; c < head_dim; ++c)
            result.output[c] +=
                std::exp(double{scores[j]} - shift) / result.sum * double{values[j * head_dim + c]};
    return result;
}

}  // namespace fa
