#pragma once
/// @file
/// The loss of a network on a run of tokens, in bounded memory.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "chapters/07_gpt2_124m/gpt2_runner.h"

namespace fa {

/// Which targets are evaluated, and how many sequences go through the network together.
struct EvaluationPlan {
    std::int64_t count = 0;    ///< targets; needs count + 1 tokens
    std::int64_t context = 0;  ///< tokens of a sequence; the last may be shorter
    std::int64_t batch = 4;    ///< sequences in one pass

    /// Sequences, a shorter last one included.
    std::int64_t sequences() const { return count / context + (count % context > 0); }
    /// Targets of sequence `i`: context, or what is left for the last one.
    std::int64_t length(std::int64_t i) const {
        return i + 1 < sequences() ? context : count - i * context;
    }
    /// Tokens of the longest sequence: what a runner must have room for.
    std::int64_t longest() const { return std::min(context, count); }
    /// Most sequences in one pass: likewise.
    std::int64_t most_sequences() const { return std::min(batch, sequences()); }
};

/// What came out.
struct Evaluation {
    std::vector<double> sequence_losses;  ///< mean cross-entropy of each sequence, nats
    double loss = 0;                      ///< mean over all targets
    double seconds = 0;                   ///< the whole pass: network, output layer and loss
    double attention_seconds = 0;         ///< of these, inside the attention door
};

/// What sees the batches of a plan: the pass's hidden states [batch · length, width] and targets.
using BatchConsumer =
    std::function<void(std::int64_t batch, std::int64_t length, std::span<const float> hidden,
                       std::span<const std::int32_t> targets)>;

/// Runs the network over the sequences of a plan, `plan.batch` at a time; a shorter last sequence
/// goes by itself. Sequence i takes the inputs t[i·context … (i+1)·context − 1], its targets are
/// the same shifted by one.
/// @return seconds spent inside the attention door
/// @throws std::invalid_argument naming the numbers if the plan asks for fewer than one token,
///         sequence or target, or there are too few tokens
double for_each_batch(const Gpt2& model, const ForwardOptions& options,
                      std::span<const std::int32_t> tokens, const EvaluationPlan& plan,
                      const BatchConsumer& consume);

/// The loss over the targets of a plan, by a runner with room for it. A shorter last sequence
/// counts by its tokens, so the mean is over targets, whatever context and batch are.
/// @param advance called with the number of sequences just done; may be empty
/// @throws as for_each_batch()
Evaluation evaluate(Gpt2Runner& runner, std::span<const std::int32_t> tokens,
                    const EvaluationPlan& plan,
                    const std::function<void(std::int64_t)>& advance = {});

/// The same with a runner made for it.
Evaluation evaluate(const Gpt2& model, const ForwardOptions& options,
                    std::span<const std::int32_t> tokens, const EvaluationPlan& plan,
                    const std::function<void(std::int64_t)>& advance = {});

}  // namespace fa
