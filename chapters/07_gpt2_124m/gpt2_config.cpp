#include "chapters/07_gpt2_124m/gpt2_config.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <stdexcept>

#include "chapters/07_gpt2_124m/json_keys.h"

namespace fa {
namespace {

/// No extent of a published GPT-2 comes near; below it, no product of two overflows.
constexpr std::int64_t LARGEST_EXTENT = std::int64_t{1} << 24;

/// A config file is a few hundred bytes; what is longer than this is something else.
constexpr std::size_t LARGEST_FILE = 1u << 20;

/// An extent of the network.
std::int64_t extent(const JsonKeys& keys, const char* key) {
    return keys.count(key, LARGEST_EXTENT);
}

/// A number above 0 and at most 1.
float positive(const JsonKeys& keys, const char* key, double otherwise) {
    const double value = keys.number(key).value_or(otherwise);
    if (!(value > 0) || value > 1) keys.refuse(key, "not a number above 0 and at most 1");
    return static_cast<float>(value);
}

/// What changes the function that the network computes, and is not built here.
void refuse_other_networks(const JsonKeys& keys) {
    if (keys.text("model_type", "gpt2") != "gpt2") keys.refuse("model_type", "not \"gpt2\"");
    // Both names mean the tanh form. The form with erf differs by up to 4.7e-4.
    const std::string activation = keys.text("activation_function", "gelu_new");
    if (activation != "gelu_new" && activation != "gelu_pytorch_tanh")
        keys.refuse("activation_function",
                    "and only \"gelu_new\" and \"gelu_pytorch_tanh\" are built");
    if (keys.flag("add_cross_attention", false))
        keys.refuse("add_cross_attention", "and cross-attention is not built");
    // `reorder_and_upcast_attn` is about sums in half precision: ours are fp32 with it or without.
    keys.flag("reorder_and_upcast_attn", false);
}

}  // namespace

float Gpt2Config::attention_scale(std::int64_t layer) const {
    double scale = scale_by_head_dim ? 1.0 / std::sqrt(static_cast<double>(head_dim())) : 1.0;
    if (scale_by_layer_index) scale /= static_cast<double>(layer + 1);
    return static_cast<float>(scale);
}

std::int64_t Gpt2Config::parameters() const {
    const std::int64_t norm = 2 * width;
    const std::int64_t attention = width * 3 * width + 3 * width + width * width + width;
    const std::int64_t mlp = width * inner + inner + inner * width + width;
    const std::int64_t head = tied_head ? 0 : vocabulary * width;
    return (vocabulary + context) * width + layers * (2 * norm + attention + mlp) + norm + head;
}

double Gpt2Config::matrix_flops_per_token() const {
    const auto w = static_cast<double>(width);
    const double per_layer = 4 * w * w + 2 * w * static_cast<double>(inner);
    return 2 * (static_cast<double>(layers) * per_layer + static_cast<double>(vocabulary) * w);
}

Gpt2Config parse_gpt2_config(std::string_view text, const std::string& source) {
    const JsonKeys keys(text, source);
    refuse_other_networks(keys);
    Gpt2Config config;
    config.layers = extent(keys, "n_layer");
    config.heads = extent(keys, "n_head");
    config.width = extent(keys, "n_embd");
    config.inner = keys.count("n_inner", LARGEST_EXTENT, 4 * config.width);
    config.context = extent(keys, keys.has("n_positions") ? "n_positions" : "n_ctx");
    config.vocabulary = extent(keys, "vocab_size");
    config.layer_norm_epsilon = positive(keys, "layer_norm_epsilon", 1e-5);
    config.tied_head = keys.flag("tie_word_embeddings", true);
    config.scale_by_head_dim = keys.flag("scale_attn_weights", true);
    config.scale_by_layer_index = keys.flag("scale_attn_by_inverse_layer_idx", false);
    if (config.width % config.heads != 0)
        throw std::runtime_error(fmt::format("{}: \"n_embd\" {} is not a multiple of \"n_head\" {}",
                                             source, config.width, config.heads));
    return config;
}

Gpt2Config read_gpt2_config(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(fmt::format("{}: cannot be opened", path.string()));
    std::string text(LARGEST_FILE + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (file.bad()) throw std::runtime_error(fmt::format("{}: cannot be read", path.string()));
    if (text.size() > LARGEST_FILE)
        throw std::runtime_error(
            fmt::format("{}: longer than {} bytes, no config", path.string(), LARGEST_FILE));
    return parse_gpt2_config(text, path.string());
}

}  // namespace fa
