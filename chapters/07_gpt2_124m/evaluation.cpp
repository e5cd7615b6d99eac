#include "chapters/07_gpt2_124m/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <stdexcept>

#include "chapters/07_gpt2_124m/cross_entropy.h"

namespace fa {
namespace {

void check(const EvaluationPlan& plan, std::size_t tokens) {
    if (plan.count < 1 || plan.context < 1 || plan.batch < 1)
        throw std::invalid_argument(
            fmt::format("evaluation: {} targets in sequences of {}, {} at a "
                        "time",
                        plan.count, plan.context, plan.batch));
    if (static_cast<std::size_t>(plan.count) + 1 > tokens)
        throw std::invalid_argument(
            fmt::format("evaluation: {} targets need {} tokens, there are {}", plan.count,
                        plan.count + 1, tokens));
}

}  // namespace

double for_each_batch(const Gpt2& model, const ForwardOptions& options,
                      std::span<const std::int32_t> tokens, const EvaluationPlan& plan,
                      const BatchConsumer& consume) {
    check(plan, tokens.size());
    const std::int64_t sequences = plan.sequences();
    Forward forward(model, options, std::min(plan.batch, sequences),
                    std::min(plan.context, plan.count));
    for (std::int64_t first = 0; first < sequences;) {
        const std::int64_t length = plan.length(first);
        std::int64_t batch = std::min(plan.batch, sequences - first);
        if (plan.length(first + batch - 1) != length) --batch;  // the shorter one goes by itself
        const auto offset = static_cast<std::size_t>(first * plan.context);
        const auto count = static_cast<std::size_t>(batch * length);
        const std::span<const float> hidden = forward.run(tokens.subspan(offset, count), batch);
        consume(batch, length, hidden, tokens.subspan(offset + 1, count));
        first += batch;
    }
    return forward.attention_seconds();
}

Evaluation evaluate(const Gpt2& model, const ForwardOptions& options,
                    std::span<const std::int32_t> tokens, const EvaluationPlan& plan,
                    const std::function<void(std::int64_t)>& advance) {
    const Arithmetic arithmetic{options.activations, options.threads};
    std::vector<double> losses;
    Evaluation result;
    double sum = 0;
    const auto start = std::chrono::steady_clock::now();
    result.attention_seconds = for_each_batch(
        model, options, tokens, plan,
        [&](std::int64_t batch, std::int64_t length, std::span<const float> hidden,
            std::span<const std::int32_t> targets) {
            losses.resize(targets.size());
            cross_entropy(model, hidden, targets, arithmetic, losses);
            for (std::int64_t i = 0; i < batch; ++i) {
                const auto begin = losses.begin() + i * length;
                const double total = std::accumulate(begin, begin + length, 0.0);
                result.sequence_losses.push_back(total / static_cast<double>(length));
                sum += total;
            }
            if (advance) advance(batch);
        });
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.loss = sum / static_cast<double>(plan.count);
    return result;
}

}  // namespace fa
