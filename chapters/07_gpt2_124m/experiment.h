#pragma once
/// @file
/// The chapter's experiment: one network, one run of tokens, and each attention in turn.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "chapters/07_gpt2_124m/evaluation.h"
#include "chapters/07_gpt2_124m/generation.h"
#include "chapters/07_gpt2_124m/gpt2_model.h"

namespace fa {

/// One attention in the network.
struct Run {
    const Implementation* implementation = nullptr;  ///< of the list
    DType activations = DType::f32;                  ///< type of all that the network computes
    std::string unsupported;  ///< the implementation's reason; then nothing below is set
    Evaluation evaluation;    ///< losses and times
    std::vector<std::int32_t> continuation;  ///< of the prompt, empty without it or finite loss

    /// Evaluated targets by the time of the whole pass.
    double tokens_per_second(const EvaluationPlan& plan) const {
        return static_cast<double>(plan.count) / evaluation.seconds;
    }
    /// In [0, 1].
    double attention_share() const { return evaluation.attention_seconds / evaluation.seconds; }
};

/// All that is held fixed while the attention changes.
struct Experiment {
    std::vector<std::int32_t> tokens;  ///< at least plan.count + 1
    EvaluationPlan plan;               ///< what is evaluated of them
    int threads = 0;                   ///< 0: as many as OpenMP offers
    std::vector<std::int32_t> prompt;  ///< may be empty
    std::int64_t generate_count = 0;   ///< tokens to continue the prompt by
    Sampling sampling;                 ///< how tokens are chosen

    /// Options of a forward pass of this experiment.
    ForwardOptions options(const Implementation& implementation, DType activations) const {
        return {.attention = &implementation,
                .activations = activations,
                .threads = threads,
                .observer = {}};
    }

    /// Evaluates the plan, after one sequence to warm up, and continues the prompt if there is one
    /// and the loss is finite.
    /// @param model   its weights already rounded to `activations`
    /// @param advance called with the number of sequences just done
    /// @throws what evaluate() and generate() throw; Unsupported is kept in the result instead
    Run run(const Gpt2& model, const Implementation& implementation, DType activations,
            const std::function<void(std::int64_t)>& advance) const;
};

/// The run that others are compared with: cpu_naive if it is among them, else the first with fp32
/// scores, else the first; null if none ran.
const Run* baseline_of(const std::vector<Run>& runs, DType activations);

}  // namespace fa
