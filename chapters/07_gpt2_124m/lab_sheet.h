#pragma once
/// @file
/// The checks of the chapter: what must hold, whatever network and tokens are given.

#include <optional>
#include <string>
#include <vector>

#include "chapters/07_gpt2_124m/experiment.h"
#include "chapters/07_gpt2_124m/reference_losses.h"
#include "common/checks.h"

namespace fa {

/// Largest distance of an fp32 loss, per sequence, from an independent implementation's, for scores
/// divided by √d.
constexpr double REFERENCE_BOUND = 1e-4;
/// Largest distance of two fp32 losses of our own, likewise: the same sums in another order.
constexpr double AGREEMENT_BOUND = 1e-5;
/// Largest distance from the fp32 loss with 16-bit activations, if scores stay in fp32 and there
/// are at least SIXTEEN_BIT_TARGETS targets. The rounding errors of single targets average out:
/// over fewer, n, the bound grows as 1/√n.
constexpr double SIXTEEN_BIT_BOUND = 5e-4;
/// From so many targets on.
constexpr std::int64_t SIXTEEN_BIT_TARGETS = 65536;
/// Over fewer the mean is that of single targets, for which no bound is known: nothing is claimed
/// of losses that were computed in different types.
constexpr std::int64_t FEWEST_TARGETS = 64;

/// How many times as large as q·k/√d the scores of the network's first layer are: √d if its config
/// does not divide them (`scale_attn_weights`), else 1. A rounding error of a score is so many
/// times as large, too, and a loss follows small errors of scores in proportion: the two bounds on
/// fp32 losses are multiplied by this.
double score_growth(const Gpt2Config& config);

/// The bound on 16-bit losses for the targets of a plan. Nothing if there are fewer than
/// FEWEST_TARGETS, or scores are not divided by √d: those may be off by more than 1 when Q and K
/// have 16 bits, the weights by a factor of e, and a loss no longer follows in proportion.
std::optional<double> sixteen_bit_bound(const EvaluationPlan& plan, const Gpt2Config& config);

/// Largest error of a log-sum-exp summed in blocks.
constexpr double SUMMATION_BOUND = 1e-6;
/// Largest distance of the loss with bf16 scores in a bf16 network from the reference's: both are
/// far off, and should be so for the same reason.
constexpr double BF16_SCORES_BOUND = 1e-2;
/// Scores rounded to steps of this size are wrong by a factor of up to e: that must show.
constexpr double COARSE_STEP = 2;

/// Every loss is a finite number. With one attention alone no other check would see a network that
/// computes NaN.
void check_losses_are_finite(const std::vector<Run>& runs, Checks& checks);

/// fp32: each loss with fp32 scores is the reference's, where there is one, and all agree.
/// @param growth score_growth() of the network
void check_fp32_losses(const std::vector<Run>& runs, const EvaluationPlan& plan, double growth,
                       const std::optional<ReferenceLosses>& reference, Checks& checks);

/// 16-bit activations: fp32 scores keep the fp32 loss.
/// @param bound sixteen_bit_bound(); without one nothing is claimed
void check_16_bit_losses(const std::vector<Run>& runs, std::optional<double> bound, Checks& checks);

/// Scores in bf16 move the loss by more than what 16-bit activations are allowed, if the largest
/// score is so large that bf16 is coarse there. Where it is not, nothing is claimed.
/// And they move it as far as in the reference, if it has that loss and the same targets.
/// @param bound   sixteen_bit_bound()
/// @param largest largest score of each layer, empty if not measured
void check_bf16_scores(const std::vector<Run>& runs, const EvaluationPlan& plan,
                       std::optional<double> bound, const std::vector<double>& largest,
                       const std::optional<ReferenceLosses>& reference, Checks& checks);

/// fp32: every attention with fp32 scores continues the prompt the same way, and as the reference
/// does.
/// @param expected the reference's continuation of this prompt, empty if there is none
void check_continuations(const std::vector<Run>& runs, const std::vector<std::int32_t>& expected,
                         Checks& checks);

}  // namespace fa
