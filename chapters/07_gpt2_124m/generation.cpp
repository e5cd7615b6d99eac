#include "chapters/07_gpt2_124m/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "chapters/07_gpt2_124m/gpt2_runner.h"
#include "common/random.h"

namespace fa {
namespace {

/// Draws a token with probability proportional to exp(logit/temperature), among the `top_k`
/// likeliest. Of equal logits the lower id comes first, so that a seed names one text.
std::int32_t draw(std::span<const float> logits, const Sampling& sampling, Random& random) {
    std::vector<std::int32_t> ids(logits.size());
    std::iota(ids.begin(), ids.end(), 0);
    const auto logit = [&](std::int32_t id) { return logits[static_cast<std::size_t>(id)]; };
    const auto likelier = [&](std::int32_t a, std::int32_t b) {
        return logit(a) != logit(b) ? logit(a) > logit(b) : a < b;
    };
    const auto kept = sampling.top_k == 0
                          ? logits.size()
                          : std::min(logits.size(), static_cast<std::size_t>(sampling.top_k));
    std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(kept), ids.end(),
                      likelier);
    ids.resize(kept);

    std::vector<double> cumulative;
    double sum = 0;
    for (const std::int32_t id : ids) {
        sum += std::exp((static_cast<double>(logit(id)) - static_cast<double>(logit(ids[0]))) /
                        sampling.temperature);
        cumulative.push_back(sum);
    }
    // uniform() is in (0, 1], so the search ends at a token of positive probability.
    const auto chosen =
        std::lower_bound(cumulative.begin(), cumulative.end(), random.uniform() * sum);
    return ids[static_cast<std::size_t>(chosen - cumulative.begin())];
}

std::int32_t choose(std::span<const float> logits, const Sampling& sampling, Random& random) {
    for (std::size_t i = 0; i < logits.size(); ++i)
        if (!std::isfinite(logits[i]))
            throw std::runtime_error(fmt::format("generation: the logit of token {} is {}", i,
                                                 static_cast<double>(logits[i])));
    if (sampling.temperature > 0) return draw(logits, sampling, random);
    return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) -
                                     logits.begin());
}

}  // namespace

std::vector<std::int32_t> generate(const Gpt2& model, const ForwardOptions& options,
                                   std::span<const std::int32_t> prompt, std::int64_t count,
                                   const Sampling& sampling) {
    const auto length = static_cast<std::int64_t>(prompt.size());
    if (length == 0) throw std::invalid_argument("generation: the prompt is empty");
    if (count < 0 || count > model.config.context - length)
        throw std::invalid_argument(
            fmt::format("generation: {} tokens of prompt and {} new ones do not fit the network's "
                        "context of {}",
                        length, count, model.config.context));
    if (!(sampling.temperature >= 0) || sampling.top_k < 0)
        throw std::invalid_argument(fmt::format("generation: temperature {}, top_k {}",
                                                sampling.temperature, sampling.top_k));

    const auto runner = make_runner(model, options, 1, length + count, Forward::Cache::keep);
    Random random(sampling.seed);
    std::vector<float> next(static_cast<std::size_t>(model.config.vocabulary));
    std::vector<std::int32_t> generated;
    std::span<const std::int32_t> input = prompt;
    while (static_cast<std::int64_t>(generated.size()) < count) {
        runner->next_logits(input, next);
        generated.push_back(choose(next, sampling, random));
        input = std::span<const std::int32_t>(generated).last(1);
    }
    return generated;
}

}  // namespace fa
