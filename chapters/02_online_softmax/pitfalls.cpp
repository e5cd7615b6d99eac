#include "chapters/02_online_softmax/pitfalls.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace fa {
namespace {

float round_to(DType dtype, float x) {
    return with_element_type(
        dtype, [x](auto type) { return static_cast<float>(static_cast<decltype(type)>(x)); });
}

RoundedSoftmax rounded_softmax(std::span<const float> scores, float shift, DType dtype) {
    RoundedSoftmax result;
    for (const float score : scores) {
        result.weights.push_back(round_to(dtype, std::exp(round_to(dtype, score - shift))));
        result.sum = round_to(dtype, result.sum + result.weights.back());
    }
    for (float& weight : result.weights) weight = round_to(dtype, weight / result.sum);
    return result;
}

}  // namespace

double largest_finite(DType dtype) {
    switch (dtype) {
        case DType::f16: return static_cast<double>(from_float16_bits(0x7bff));
        case DType::bf16: return static_cast<double>(from_bfloat16_bits(0x7f7f));
        case DType::f32: break;
    }
    return static_cast<double>(std::numeric_limits<float>::max());
}

float last_finite_exp(DType dtype) {
    // Positive floats are ordered as their bits are.
    auto finite = std::bit_cast<std::uint32_t>(1.0f);
    auto infinite = std::bit_cast<std::uint32_t>(1000.0f);
    while (infinite - finite > 1) {
        const std::uint32_t middle = finite + (infinite - finite) / 2;
        const float exponential = round_to(dtype, std::exp(std::bit_cast<float>(middle)));
        (std::isfinite(exponential) ? finite : infinite) = middle;
    }
    return std::bit_cast<float>(finite);
}

// [without_max]
RoundedSoftmax softmax_without_max(std::span<const float> scores, DType dtype) {
    return rounded_softmax(scores, 0.0f, dtype);
}

RoundedSoftmax softmax_with_max(std::span<const float> scores, DType dtype) {
    return rounded_softmax(scores, *std::ranges::max_element(scores), dtype);
}
// [without_max]

SoftmaxState unguarded_online_softmax(std::span<const float> scores, std::size_t block) {
    SoftmaxState state;
    for (std::size_t first = 0; first < scores.size(); first += block) {
        const auto s = scores.subspan(first, std::min(block, scores.size() - first));
        const float old_max = state.max;
        for (const float score : s) state.max = std::fmax(state.max, score);
        state.sum *= std::exp(old_max - state.max);
        for (const float score : s) state.sum += std::exp(score - state.max);
    }
    return state;
}

}  // namespace fa
