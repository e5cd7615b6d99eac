#pragma once
/// @file
/// How large a network's attention scores are: what decides which number formats may hold them.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "chapters/07_gpt2_124m/evaluation.h"

namespace fa {

/// The largest |scale · q·k| over the entries that the mask leaves visible. NaN if one is NaN.
/// @param tensors host memory; O is not touched
double largest_score(const AttentionProblem& problem, const AttentionTensors& tensors,
                     int threads = 0);

/// The largest score of each layer over all heads and sequences of a plan. A pass of its own: the
/// timed ones do nothing but attention.
/// @throws as evaluate()
std::vector<double> largest_scores(const Gpt2& model, const ForwardOptions& options,
                                   std::span<const std::int32_t> tokens, const EvaluationPlan& plan,
                                   const std::function<void(std::int64_t)>& advance = {});

/// Distance between neighbouring bf16 numbers at `value`: bf16 has 8 significant bits. 0 at 0,
/// NaN at what is not finite.
double bf16_step(double value);

}  // namespace fa
