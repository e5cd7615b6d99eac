#pragma once
/// @file
/// GPT-2's forward pass in fp64, one loop after the other: what the chapter's is compared with.

#include <cstdint>
#include <span>
#include <vector>

#include "chapters/07_gpt2_124m/gpt2_model.h"

namespace fa::testing {

/// The logits of each token of one sequence, [tokens, vocabulary].
std::vector<double> gpt2_logits_fp64(const Gpt2& model, std::span<const std::int32_t> tokens);

/// The loss of each target, given the token before it: −log softmax(logits)[target].
std::vector<double> gpt2_losses_fp64(const Gpt2& model, std::span<const std::int32_t> tokens,
                                     std::span<const std::int32_t> targets);

}  // namespace fa::testing
