#include "chapters/07_gpt2_124m/experiment.h"

#include <algorithm>
#include <cmath>

#include "chapters/01_memory_accounting/naive_attention.h"

namespace fa {

Run Experiment::run(const Gpt2& model, const Implementation& implementation, DType activations,
                    const std::function<void(std::int64_t)>& advance) const {
    Run run;
    run.implementation = &implementation;
    run.activations = activations;
    const ForwardOptions with = options(implementation, activations);
    try {
        const auto runner =
            make_runner(model, with, plan.most_sequences(), plan.longest(), Forward::Cache::none);
        // On a GPU the first full pass chooses algorithms and takes workspaces.
        EvaluationPlan warm_up = plan;
        warm_up.count = std::min(
            plan.count,
            (implementation.device == Device::cuda ? plan.most_sequences() : 1) * plan.context);
        evaluate(*runner, tokens, warm_up);
        run.evaluation = evaluate(*runner, tokens, plan, advance);
        // Without a finite loss there are no logits to choose a token by. The checks say so.
        if (!prompt.empty() && std::isfinite(run.evaluation.loss))
            run.continuation = generate(model, with, prompt, generate_count, sampling);
    } catch (const Unsupported& refusal) {
        run.unsupported = refusal.what();
    }
    return run;
}

const Run* baseline_of(const std::vector<Run>& runs, DType activations) {
    const Run* best = nullptr;
    for (const Run& run : runs) {
        if (run.activations != activations || !run.unsupported.empty()) continue;
        if (run.implementation->name == CPU_NAIVE.name) return &run;
        if (!best || (best->implementation->rounds_scores && !run.implementation->rounds_scores))
            best = &run;
    }
    return best;
}

}  // namespace fa
