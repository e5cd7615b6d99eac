#include "chapters/07_gpt2_124m/gpt2_model.h"

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "chapters/07_gpt2_124m/layers.h"
#include "chapters/07_gpt2_124m/rounding.h"

namespace fa {
namespace {

std::size_t size(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

}  // namespace

Gpt2 read_gpt2(const std::filesystem::path& directory) {
    const Gpt2Config config = read_gpt2_config(directory / "config.json");
    return {config, read_gpt2_weights(directory / "model.safetensors", config)};
}

Forward::Forward(const Gpt2& model, ForwardOptions options, std::int64_t batch,
                 std::int64_t max_length, Cache cache)
    : model_(model),
      options_(std::move(options)),
      cache_(cache),
      max_batch_(batch),
      max_length_(max_length) {
    const Gpt2Config& config = model.config;
    if (!options_.attention || options_.attention->device != Device::cpu)
        throw std::invalid_argument("forward pass: needs an attention that runs on the CPU");
    if (batch < 1 || max_length < 1 || (cache == Cache::keep && batch != 1))
        throw std::invalid_argument(fmt::format("forward pass: batch {} of length {}{}", batch,
                                                max_length,
                                                cache == Cache::keep ? " with a cache" : ""));
    if (max_length > config.context)
        throw std::invalid_argument(
            fmt::format("forward pass: a sequence of {} tokens does not fit the network's context "
                        "of {}",
                        max_length, config.context));
    const std::int64_t rows = batch * max_length;
    residual_.resize(size(rows * config.width));
    normed_.resize(size(rows * config.width));
    inner_.resize(size(rows * config.inner));
    // 16-bit activations pass through one fp32 buffer and are kept, if at all, in 16 bits.
    const bool wide = options_.activations == DType::f32;
    const std::int64_t kept = cache == Cache::keep ? config.layers : 1;
    qkv_.resize(size((wide ? kept : 1) * rows * 3 * config.width));
    if (!wide) {
        qkv_16_ =
            AlignedBuffer(size(kept * rows * 3 * config.width) * size_of(options_.activations));
        attended_16_ = AlignedBuffer(size(rows * config.width) * size_of(options_.activations));
    }
}

void Forward::check(std::span<const std::int32_t> tokens, std::int64_t batch) const {
    const auto count = static_cast<std::int64_t>(tokens.size());
    if (batch < 1 || batch > max_batch_ || count < batch || count % batch != 0 ||
        past_ + count / batch > max_length_)
        throw std::invalid_argument(fmt::format(
            "forward pass: {} tokens as {} sequences after {} cached, with room for {} of {}",
            count, batch, past_, max_batch_, max_length_));
    for (std::size_t i = 0; i < tokens.size(); ++i)
        if (tokens[i] < 0 || tokens[i] >= model_.config.vocabulary)
            throw std::invalid_argument(
                fmt::format("forward pass: token {} is {}, outside the vocabulary of {}", i,
                            tokens[i], model_.config.vocabulary));
}

// [forward]
std::span<const float> Forward::run(std::span<const std::int32_t> tokens, std::int64_t batch) {
    check(tokens, batch);
    const Gpt2Config& config = model_.config;
    const auto rows = static_cast<std::int64_t>(tokens.size());
    const std::int64_t length = rows / batch;
    const Arithmetic arithmetic{options_.activations, options_.threads};
    float* const x = residual_.data();
    float* const normed = normed_.data();
    float* const inner = inner_.data();

    embed(model_.weights, config.width, tokens, length, past_, x, arithmetic);
    for (std::int64_t n = 0; n < config.layers; ++n) {
        const BlockWeights& block = model_.weights.blocks[size(n)];
        layer_norm(block.norm_1, x, rows, config.layer_norm_epsilon, normed, arithmetic);
        linear(block.qkv, normed, rows, new_qkv(n), Finish::store, arithmetic);
        attend(n, batch, length);  // the exchangeable part: from Q, K, V into `normed`
        linear(block.projection, normed, rows, x, Finish::add, arithmetic);
        layer_norm(block.norm_2, x, rows, config.layer_norm_epsilon, normed, arithmetic);
        linear(block.expand, normed, rows, inner, Finish::gelu, arithmetic);
        linear(block.contract, inner, rows, x, Finish::add, arithmetic);
    }
    layer_norm(model_.weights.final_norm, x, rows, config.layer_norm_epsilon, normed, arithmetic);
    if (cache_ == Cache::keep) past_ += length;
    return {normed, size(rows * config.width)};
}
// [forward]

/// Where `c_attn` writes the rows of the new tokens: into the cache itself if it is fp32.
float* Forward::new_qkv(std::int64_t layer) {
    const bool in_place = cache_ == Cache::keep && options_.activations == DType::f32;
    return qkv_.data() + (in_place ? (layer * max_length_ + past_) * 3 * model_.config.width : 0);
}

/// The packed rows of all tokens so far, the oldest first, after those of the new ones were
/// written.
template <class T>
const T* Forward::all_qkv(std::int64_t layer, std::int64_t new_rows) {
    const std::int64_t row = 3 * model_.config.width;
    const std::int64_t first = cache_ == Cache::keep ? layer * max_length_ * row : 0;
    if constexpr (std::is_same_v<T, float>) {
        return qkv_.data() + first;
    } else {
        T* const packed = reinterpret_cast<T*>(qkv_16_.bytes().data()) + first;
        const std::span<const float> fresh(qkv_.data(), size(new_rows * row));
        convert(fresh, packed + past_ * row);
        return packed;
    }
}

// [attend]
void Forward::attend(std::int64_t layer, std::int64_t batch, std::int64_t length) {
    const Gpt2Config& config = model_.config;
    const std::int64_t width = config.width, head_dim = config.head_dim();
    const AttentionProblem problem{
        .batch = batch,
        .heads_q = config.heads,
        .heads_kv = config.heads,
        .len_q = length,
        .len_kv =
            past_ + length,  // with a cache, the mask's bottom-right alignment is what we need
        .head_dim = head_dim,
        .dtype = options_.activations,
        .scale = config.attention_scale(layer),
        .causal = true,
    };
    with_element_type(problem.dtype, [&](auto tag) {
        using T = decltype(tag);
        // A token's row holds its queries, keys and values of all heads: Q | K | V, each `width`
        // long.
        const T* const qkv = all_qkv<T>(layer, batch * length);
        const Strides packed{problem.len_kv * 3 * width, head_dim, 3 * width};
        const View<const T> q{qkv + past_ * 3 * width, problem.q_shape(), packed};
        const View<const T> k{qkv + width, problem.kv_shape(), packed};
        const View<const T> v{qkv + 2 * width, problem.kv_shape(), packed};
        const Strides heads_side_by_side{length * width, head_dim, width};
        if constexpr (std::is_same_v<T, float>) {
            const View<T> o{normed_.data(), problem.q_shape(), heads_side_by_side};
            run_attention(layer, problem, {q, k, v, o, {}});
        } else {
            const View<T> o{reinterpret_cast<T*>(attended_16_.bytes().data()), problem.q_shape(),
                            heads_side_by_side};
            run_attention(layer, problem, {q, k, v, o, {}});
            convert(std::span<const T>(o.data, size(batch * length * width)), normed_.data());
        }
    });
}
// [attend]

void Forward::run_attention(std::int64_t layer, const AttentionProblem& problem,
                            const AttentionTensors& tensors) {
    if (options_.observer) options_.observer(layer, problem, tensors);
    const Implementation& implementation = *options_.attention;
    const std::string reason = implementation.why_unsupported(problem);
    if (!reason.empty()) throw Unsupported(fmt::format("{}: {}", implementation.name, reason));
    const Launch launch{.threads = options_.threads};
    const std::size_t needed = implementation.workspace_bytes(problem, launch);
    if (workspace_.bytes().size() < needed) workspace_ = AlignedBuffer(needed);

    const auto start = std::chrono::steady_clock::now();
    attention(implementation, problem, tensors, workspace_.bytes(), launch);
    attention_seconds_ +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace fa
