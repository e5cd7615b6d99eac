#pragma once
/// @file
/// The output layer and the loss, without a [tokens × vocabulary] matrix.

#include <cstdint>
#include <span>

#include "chapters/07_gpt2_124m/gpt2_model.h"
#include "chapters/07_gpt2_124m/layers.h"

namespace fa {

/// losses[i] = log Σ_v exp(logit_v) − logit_target, in nats: what the network pays for the token
/// that came. The logits of all tokens and the whole vocabulary would be 13 GB for 65,536 tokens of
/// GPT-2. They are computed in tiles, and the logarithm of the sum runs over a row's tiles by the
/// recurrence of chapter 2, with (m, l) and without V. Within a tile the exponentials are summed in
/// fp32, tiles are added in fp64.
/// @param hidden     [targets, width], the result of Forward::run()
/// @param targets    ids in [0, vocabulary)
/// @param arithmetic 16-bit activations: logits are rounded to that type
/// @param losses     as many as targets
/// @throws std::invalid_argument naming the numbers if sizes do not fit or an id is outside
void cross_entropy(const Gpt2& model, std::span<const float> hidden,
                   std::span<const std::int32_t> targets, const Arithmetic& arithmetic,
                   std::span<double> losses);

/// The logits of one token, over the whole vocabulary.
/// @param hidden [width], a row of the result of Forward::run()
/// @param out    [vocabulary]
void logits(const Gpt2& model, std::span<const float> hidden, const Arithmetic& arithmetic,
            std::span<float> out);

}  // namespace fa
