#include "chapters/07_gpt2_124m/lab_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chapters/07_gpt2_124m/attention_statistics.h"

namespace fa {
namespace {

/// The runs that went through, in one type of activations, with bf16 scores or without.
std::vector<const Run*> select(const std::vector<Run>& runs, bool fp32_activations,
                               bool bf16_scores) {
    std::vector<const Run*> selected;
    for (const Run& run : runs)
        if (run.unsupported.empty() && (run.activations == DType::f32) == fp32_activations &&
            run.implementation->rounds_scores == bf16_scores)
            selected.push_back(&run);
    return selected;
}

std::string label(const Run& run, const std::string& what) {
    return fmt::format("{}, {}: {}", run.implementation->name, name_of(run.activations), what);
}

/// The loss that others are measured by; nothing if only bf16 scores were tried.
std::optional<double> fp32_loss_of(const std::vector<Run>& runs) {
    const Run* const baseline = baseline_of(runs, DType::f32);
    if (!baseline || baseline->implementation->rounds_scores) return std::nullopt;
    return baseline->evaluation.loss;
}

}  // namespace

void check_losses_are_finite(const std::vector<Run>& runs, Checks& checks) {
    const auto wrong = std::ranges::count_if(runs, [](const Run& run) {
        return run.unsupported.empty() && !std::isfinite(run.evaluation.loss);
    });
    checks.equal("losses that are not finite", static_cast<double>(wrong), 0);
}

double score_growth(const Gpt2Config& config) {
    return config.scale_by_head_dim ? 1 : std::sqrt(static_cast<double>(config.head_dim()));
}

void check_fp32_losses(const std::vector<Run>& runs, const EvaluationPlan& plan, double growth,
                       const std::optional<ReferenceLosses>& reference, Checks& checks) {
    const std::vector<const Run*> selected = select(runs, true, false);
    for (const Run* run : selected) {
        if (!reference) continue;
        if (const auto distance = reference->distance(plan, run->evaluation))
            checks.at_most(label(*run, fmt::format("loss - reference, largest of {} sequences",
                                                   distance->sequences)),
                           distance->largest, growth * REFERENCE_BOUND);
    }
    for (const Run* run : selected)
        if (run != selected.front())
            checks.at_most(label(*run, fmt::format("loss - loss with {}",
                                                   selected.front()->implementation->name)),
                           std::abs(run->evaluation.loss - selected.front()->evaluation.loss),
                           growth * AGREEMENT_BOUND);
}

std::optional<double> sixteen_bit_bound(const EvaluationPlan& plan, const Gpt2Config& config) {
    if (plan.count < FEWEST_TARGETS || !config.scale_by_head_dim) return std::nullopt;
    const double fewer = static_cast<double>(SIXTEEN_BIT_TARGETS) / static_cast<double>(plan.count);
    return SIXTEEN_BIT_BOUND * std::sqrt(std::max(1.0, fewer));
}

void check_16_bit_losses(const std::vector<Run>& runs, std::optional<double> bound,
                         Checks& checks) {
    const auto fp32_loss = fp32_loss_of(runs);
    if (!fp32_loss || !bound) return;
    for (const Run* run : select(runs, false, false))
        checks.at_most(label(*run, "loss - loss in fp32"),
                       std::abs(run->evaluation.loss - *fp32_loss), *bound);
}

void check_bf16_scores(const std::vector<Run>& runs, const EvaluationPlan& plan,
                       std::optional<double> bound, const std::vector<double>& largest,
                       const std::optional<ReferenceLosses>& reference, Checks& checks) {
    const auto fp32_loss = fp32_loss_of(runs);
    const double score = largest.empty() ? 0 : *std::max_element(largest.begin(), largest.end());
    for (const bool fp32_activations : {true, false})
        for (const Run* run : select(runs, fp32_activations, true))
            if (fp32_loss && bound && bf16_step(score) >= COARSE_STEP)
                checks.at_least(
                    label(*run, fmt::format("loss moves: scores reach {:.0f}, where bf16 "
                                            "steps by {:g}",
                                            score, bf16_step(score))),
                    std::abs(run->evaluation.loss - *fp32_loss), *bound);
    if (!reference || !reference->bf16_scores_loss || plan.context != reference->context ||
        plan.count != reference->targets)
        return;
    for (const Run* run : select(runs, false, true))
        if (run->activations == DType::bf16)
            checks.at_most(label(*run, "loss - reference's with bf16 scores"),
                           std::abs(run->evaluation.loss - *reference->bf16_scores_loss),
                           BF16_SCORES_BOUND);
}

void check_continuations(const std::vector<Run>& runs, const std::vector<std::int32_t>& expected,
                         Checks& checks) {
    const std::vector<const Run*> selected = select(runs, true, false);
    if (selected.empty() || selected.front()->continuation.empty()) return;
    const auto& first = selected.front()->continuation;
    for (const Run* run : selected)
        if (run != selected.front())
            checks.that(label(*run, "continues the prompt"),
                        fmt::format("as {}", selected.front()->implementation->name),
                        run->continuation == first ? "the same" : "differently",
                        run->continuation == first);
    if (expected.empty()) return;
    // One may be longer than the other.
    const std::size_t common = std::min(first.size(), expected.size());
    const auto [ours, theirs] = std::mismatch(
        first.begin(), first.begin() + static_cast<std::ptrdiff_t>(common), expected.begin());
    const auto same = static_cast<std::size_t>(ours - first.begin());
    checks.that(label(*selected.front(), "continues the prompt as the reference does"),
                fmt::format("{} tokens", common), fmt::format("{} tokens", same), same == common);
}

}  // namespace fa
