#pragma once
/// @file
/// The trained values of a GPT-2, read from Hugging Face's `model.safetensors`.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "chapters/07_gpt2_124m/gpt2_config.h"
#include "common/dtype.h"

namespace fa {

/// What a layer norm multiplies by and adds.
struct NormWeights {
    std::vector<float> gain;  ///< [width]
    std::vector<float> bias;  ///< [width]
};

/// y = x·W + b. GPT-2's files store W as [in, out] (there the layer is called Conv1D), the
/// transpose of what most networks do.
struct LinearWeights {
    std::int64_t in = 0;        ///< width of x
    std::int64_t out = 0;       ///< width of y
    std::vector<float> weight;  ///< [in, out]
    std::vector<float> bias;    ///< [out]
};

/// One layer of the network.
struct BlockWeights {
    NormWeights norm_1;        ///< ln_1, before attention
    LinearWeights qkv;         ///< c_attn, [width, 3·width]: queries, keys and values side by side
    LinearWeights projection;  ///< attn.c_proj, [width, width]
    NormWeights norm_2;        ///< ln_2, before the two layers below
    LinearWeights expand;      ///< c_fc, [width, inner]
    LinearWeights contract;    ///< mlp.c_proj, [inner, width]
};

/// All of them, in fp32 whatever the file holds.
struct Gpt2Weights {
    std::vector<float> token_embedding;     ///< wte, [vocabulary, width]
    std::vector<float> position_embedding;  ///< wpe, [context, width]
    std::vector<BlockWeights> blocks;       ///< one for each layer
    NormWeights final_norm;                 ///< ln_f
    std::vector<float> own_head;            ///< lm_head, [vocabulary, width]; empty if tied

    /// The matrix of the output layer, [vocabulary, width].
    const std::vector<float>& head() const { return own_head.empty() ? token_embedding : own_head; }
};

/// Reads the weights that `config` describes. Dtypes F32, F16 and BF16; names with or without the
/// prefix "transformer."; the mask buffers `h.N.attn.bias` and `h.N.attn.masked_bias` of older
/// files are ignored. An `lm_head.weight` is used if the config says that the head is not tied;
/// beside a tied head it may only repeat `wte.weight`.
/// @throws std::runtime_error naming file and key for a tensor that is missing, has another shape
///         or dtype than the config asks for, or belongs to no network of this config
Gpt2Weights read_gpt2_weights(const std::filesystem::path& path, const Gpt2Config& config);

/// Rounds every weight to `dtype`, as `model.bfloat16()` and `model.half()` do in PyTorch.
void round_weights(Gpt2Weights& weights, DType dtype);

}  // namespace fa
