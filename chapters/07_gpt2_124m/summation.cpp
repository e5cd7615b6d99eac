#include "chapters/07_gpt2_124m/summation.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "common/random.h"

namespace fa {
namespace {

constexpr std::size_t LANES = 16, BLOCK = 512;

float sum_of(std::span<const float> values) {
    float sum = 0;
    for (const float value : values) sum += value;
    return sum;
}

float sum_in_lanes(std::span<const float> values) {
    std::array<float, LANES> lanes{};
    for (std::size_t i = 0; i < values.size(); ++i) lanes[i % LANES] += values[i];
    return sum_of(lanes);
}

}  // namespace

LogSums log_sums(std::span<const float> logits) {
    if (logits.empty()) return {};
    const float max = *std::max_element(logits.begin(), logits.end());
    std::vector<float> exponentials;
    exponentials.reserve(logits.size());
    for (const float logit : logits) exponentials.push_back(std::exp(logit - max));
    const std::span<const float> all = exponentials;

    double blocks = 0, exact = 0;
    for (std::size_t i = 0; i < all.size(); i += BLOCK)
        blocks +=
            static_cast<double>(sum_in_lanes(all.subspan(i, std::min(BLOCK, all.size() - i))));
    for (const float value : all) exact += static_cast<double>(value);
    const auto log_of = [&](double sum) { return static_cast<double>(max) + std::log(sum); };
    return {log_of(static_cast<double>(sum_of(all))),
            log_of(static_cast<double>(sum_in_lanes(all))), log_of(blocks), log_of(exact)};
}

std::vector<float> power_law_logits(std::int64_t vocabulary, double exponent, std::uint64_t seed) {
    std::vector<float> logits;
    for (std::int64_t rank = 1; rank <= vocabulary; ++rank)
        logits.push_back(static_cast<float>(-exponent * std::log(static_cast<double>(rank))));
    Random random(seed);
    for (std::size_t i = logits.size(); i > 1; --i)
        std::swap(logits[i - 1], logits[random.below(i)]);
    return logits;
}

}  // namespace fa
