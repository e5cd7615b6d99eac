#pragma once
/// @file
/// The shape of a GPT-2 network, read from Hugging Face's `config.json`.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace fa {

/// Extents and switches of a GPT-2 (Radford et al. 2019, section 2.3). The numbers of the 124M
/// model stand behind each field.
struct Gpt2Config {
    std::int64_t layers = 0;            ///< n_layer: 12
    std::int64_t heads = 0;             ///< n_head: 12; divides width
    std::int64_t width = 0;             ///< n_embd: 768
    std::int64_t inner = 0;             ///< n_inner, 4·width if null: 3072
    std::int64_t context = 0;           ///< n_positions (older files: n_ctx): 1024
    std::int64_t vocabulary = 0;        ///< vocab_size: 50257
    float layer_norm_epsilon = 1e-5f;   ///< layer_norm_epsilon
    bool tied_head = true;              ///< tie_word_embeddings: logits = hidden · wteᵀ
    bool scale_by_head_dim = true;      ///< scale_attn_weights: scores · 1/sqrt(head_dim)
    bool scale_by_layer_index = false;  ///< scale_attn_by_inverse_layer_idx: scores / (layer + 1)

    /// 64
    std::int64_t head_dim() const { return width / heads; }

    /// The factor on Q·Kᵀ in layer `layer` (0 is the first).
    float attention_scale(std::int64_t layer) const;

    /// Number of trained values, a tied head counted once.
    std::int64_t parameters() const;

    /// Floating-point operations of the matrix products with weights, per token, the head included:
    /// two for each weight. Attention's own are AttentionProblem::flops().
    double matrix_flops_per_token() const;
};

/// Reads a config from JSON text. `n_layer`, `n_head`, `n_embd`, `vocab_size` and one of
/// `n_positions` and `n_ctx` must be there; what else the forward pass depends on has GPT-2's
/// defaults. Dropout and training settings are ignored: a forward pass has none.
/// @param source what to call the text in messages
/// @throws std::runtime_error naming source, key and value if the text is no JSON object, a key is
///         missing or of the wrong type or range, or it describes something that is not computed
///         here (another activation function, another model type, cross-attention)
Gpt2Config parse_gpt2_config(std::string_view text, const std::string& source);

/// As parse_gpt2_config(), from a file. @throws std::runtime_error also if it cannot be read
Gpt2Config read_gpt2_config(const std::filesystem::path& path);

}  // namespace fa
