#pragma once
/// @file
/// GPT-2's forward pass, with attention as a part that can be exchanged.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "chapters/07_gpt2_124m/gpt2_config.h"
#include "chapters/07_gpt2_124m/gpt2_weights.h"
#include "common/aligned_buffer.h"
#include "common/attention.h"

namespace fa {

/// A network: its shape and its trained values.
struct Gpt2 {
    Gpt2Config config;    ///< the shape
    Gpt2Weights weights;  ///< of that shape
};

/// Reads `config.json` and `model.safetensors` in `directory`.
/// @throws std::runtime_error as read_gpt2_config() and read_gpt2_weights()
Gpt2 read_gpt2(const std::filesystem::path& directory);

/// Sees each attention problem of a forward pass just before it is computed; O is not yet written.
using AttentionObserver =
    std::function<void(std::int64_t layer, const AttentionProblem&, const AttentionTensors&)>;

/// How a forward pass is computed. Nothing here changes what is computed.
struct ForwardOptions {
    const Implementation* attention = nullptr;  ///< a CPU entry of the list of implementations
    /// fp32, or a 16-bit type to which each result is rounded and in which attention gets Q, K and
    /// V
    DType activations = DType::f32;
    int threads = 0;             ///< 0: as many as OpenMP offers
    AttentionObserver observer;  ///< may be empty
};

/// The memory of forward passes through one network, and the passes.
///
/// The linear layer `c_attn` writes queries, keys and values of a token side by side, [tokens,
/// 3·width]. Attention reads them there, as three strided views: nothing is copied or transposed.
class Forward {
  public:
    /// Whether keys and values are kept for tokens that follow later.
    enum class Cache { none, keep };

    /// @param model      outlives this object
    /// @param batch      most sequences in one pass; 1 with Cache::keep
    /// @param max_length most tokens of a sequence; with Cache::keep, of all passes together
    /// @throws std::invalid_argument naming the numbers if one is below 1, max_length passes the
    ///         network's context, or the attention is missing or runs on another device
    Forward(const Gpt2& model, ForwardOptions options, std::int64_t batch, std::int64_t max_length,
            Cache cache = Cache::none);

    /// The hidden states after the last layer norm, one row for each token. With Cache::keep the
    /// tokens follow those of the passes before.
    /// @param tokens [batch, length]: sequences of one length, one after the other
    /// @return [batch · length, width], valid until the next pass
    /// @throws std::invalid_argument naming the numbers if there is no token, sequences are too
    /// many
    ///         or too long, or an id is outside the vocabulary
    /// @throws Unsupported if the attention refuses the problem
    std::span<const float> run(std::span<const std::int32_t> tokens, std::int64_t batch = 1);

    /// Tokens in the cache.
    std::int64_t past() const { return past_; }

    /// Seconds spent inside the attention door by all passes so far.
    double attention_seconds() const { return attention_seconds_; }

  private:
    void check(std::span<const std::int32_t> tokens, std::int64_t batch) const;
    float* new_qkv(std::int64_t layer);
    template <class T>
    const T* all_qkv(std::int64_t layer, std::int64_t new_rows);
    void attend(std::int64_t layer, std::int64_t batch, std::int64_t length);
    void run_attention(std::int64_t layer, const AttentionProblem& problem,
                       const AttentionTensors& tensors);

    const Gpt2& model_;
    ForwardOptions options_;
    Cache cache_;
    std::int64_t max_batch_, max_length_, past_ = 0;
    double attention_seconds_ = 0;
    std::vector<float> residual_, normed_, inner_;
    std::vector<float> qkv_;  ///< [layers, max_length, 3·width] with a cache, one layer's without
    AlignedBuffer qkv_16_;    ///< the same in 16 bits, for 16-bit activations
    AlignedBuffer attended_16_;  ///< [rows, width], attention's output in 16 bits
    AlignedBuffer workspace_;    ///< the attention's
};

}  // namespace fa
