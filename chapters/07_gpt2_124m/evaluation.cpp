#include "chapters/07_gpt2_124m/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <stdexcept>

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

/// Calls `use(batch, length, inputs, targets)` for the batches of a plan, one after the other. A
/// shorter last sequence goes by itself.
template <class Use>
void cut_into_batches(std::span<const std::int32_t> tokens, const EvaluationPlan& plan, Use&& use) {
    const std::int64_t sequences = plan.sequences();
    for (std::int64_t first = 0; first < sequences;) {
        const std::int64_t length = plan.length(first);
        std::int64_t batch = std::min(plan.batch, sequences - first);
        if (plan.length(first + batch - 1) != length) --batch;
        const auto offset = static_cast<std::size_t>(first * plan.context);
        const auto count = static_cast<std::size_t>(batch * length);
        use(batch, length, tokens.subspan(offset, count), tokens.subspan(offset + 1, count));
        first += batch;
    }
}

}  // namespace

double for_each_batch(const Gpt2& model, const ForwardOptions& options,
                      std::span<const std::int32_t> tokens, const EvaluationPlan& plan,
                      const BatchConsumer& consume) {
    check(plan, tokens.size());
    Forward forward(model, options, plan.most_sequences(), plan.longest());
    cut_into_batches(
        tokens, plan,
        [&](std::int64_t batch, std::int64_t length, std::span<const std::int32_t> inputs,
            std::span<const std::int32_t> targets) {
            consume(batch, length, forward.run(inputs, batch), targets);
        });
    return forward.attention_seconds();
}

Evaluation evaluate(Gpt2Runner& runner, std::span<const std::int32_t> tokens,
                    const EvaluationPlan& plan, const std::function<void(std::int64_t)>& advance) {
    check(plan, tokens.size());
    std::vector<double> losses;
    Evaluation result;
    double sum = 0;
    const double attention_before = runner.attention_seconds();
    const auto start = std::chrono::steady_clock::now();
    cut_into_batches(
        tokens, plan,
        [&](std::int64_t batch, std::int64_t length, std::span<const std::int32_t> inputs,
            std::span<const std::int32_t> targets) {
            losses.resize(targets.size());
            runner.losses(inputs, batch, targets, losses);
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
    result.attention_seconds = runner.attention_seconds() - attention_before;
    result.loss = sum / static_cast<double>(plan.count);
    return result;
}

Evaluation evaluate(const Gpt2& model, const ForwardOptions& options,
                    std::span<const std::int32_t> tokens, const EvaluationPlan& plan,
                    const std::function<void(std::int64_t)>& advance) {
    check(plan, tokens.size());
    const auto runner =
        make_runner(model, options, plan.most_sequences(), plan.longest(), Forward::Cache::none);
    return evaluate(*runner, tokens, plan, advance);
}

}  // namespace fa
