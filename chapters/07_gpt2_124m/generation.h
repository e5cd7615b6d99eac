#pragma once
/// @file
/// Text continued by a network, one token after the other.

#include <cstdint>
#include <span>
#include <vector>

#include "chapters/07_gpt2_124m/gpt2_model.h"

namespace fa {

/// How the next token is chosen.
struct Sampling {
    double temperature = 0;  ///< 0: the likeliest token (greedy); else logits are divided by it
    std::int64_t top_k = 0;  ///< choose among this many likeliest tokens; 0: among all
    std::uint64_t seed = 1;  ///< of the draws
};

/// Continues `prompt` by `count` tokens. The first pass takes the whole prompt, each further one a
/// single token: its query meets the keys and values kept from all tokens before, len_q = 1 against
/// len_kv = n.
/// @return the new tokens
/// @throws std::invalid_argument naming the numbers if the prompt is empty, prompt and new tokens
///         do not fit the network's context, or temperature or top_k is negative
std::vector<std::int32_t> generate(const Gpt2& model, const ForwardOptions& options,
                                   std::span<const std::int32_t> prompt, std::int64_t count,
                                   const Sampling& sampling = {});

}  // namespace fa
