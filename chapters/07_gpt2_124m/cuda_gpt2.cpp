#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "chapters/07_gpt2_124m/cuda_gpt2_weights.h"
#include "chapters/07_gpt2_124m/cuda_layers.h"
#include "chapters/07_gpt2_124m/gpt2_runner.h"
#include "chapters/07_gpt2_124m/lt_matmul.h"
#include "common/cuda/check.h"
#include "common/cuda/device_buffer.h"
#include "common/cuda/stream.h"

namespace fa {
namespace {

std::size_t size(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

/// The forward pass of gpt2_model.cpp on the GPU, in T throughout: weights, activations, residual.
template <class T>
class CudaRunner : public Gpt2Runner {
  public:
    CudaRunner(const Gpt2& model, const ForwardOptions& options, std::int64_t batch,
               std::int64_t max_length, Forward::Cache cache)
        : config_(model.config),
          attention_(*options.attention),
          keep_(cache == Forward::Cache::keep),
          max_batch_(batch),
          max_length_(max_length),
          weights_(model),
          matmul_(dtype_of<T>()) {
        if (batch < 1 || max_length < 1 || max_length > config_.context || (keep_ && batch != 1))
            throw std::invalid_argument(
                fmt::format("forward pass on the GPU: batch {} of length {}{}, context {}", batch,
                            max_length, keep_ ? " with a cache" : "", config_.context));
        const std::int64_t rows = batch * max_length, width = config_.width;
        const auto room = [](std::int64_t count) { return DeviceBuffer(size(count) * sizeof(T)); };
        residual_ = room(rows * width);
        normed_ = room(rows * width);
        inner_ = room(rows * config_.inner);
        qkv_ = room((keep_ ? config_.layers : 1) * rows * 3 * width);
        // A logit tile of at most 512 MiB: [rows, vocabulary] as a whole can be larger than the
        // GPU.
        constexpr std::int64_t TILE_BYTES = std::int64_t{1} << 29;
        tile_rows_ = std::clamp<std::int64_t>(
            TILE_BYTES / (weights_.padded_vocabulary * static_cast<std::int64_t>(sizeof(T))), 1,
            rows);
        logits_ = room(tile_rows_ * weights_.padded_vocabulary);
        tokens_ = DeviceBuffer(size(rows) * sizeof(std::int32_t));
        targets_ = DeviceBuffer(size(rows) * sizeof(std::int32_t));
        losses_ = DeviceBuffer(size(std::max(rows, config_.vocabulary)) * sizeof(float));
    }

    void losses(std::span<const std::int32_t> tokens, std::int64_t batch,
                std::span<const std::int32_t> targets, std::span<double> losses) override {
        if (targets.size() != tokens.size() || losses.size() != targets.size())
            throw std::invalid_argument(fmt::format("loss: {} tokens, {} targets, {} losses",
                                                    tokens.size(), targets.size(), losses.size()));
        check_ids("target", targets);
        const T* const hidden = forward(tokens, batch);
        upload(targets_, targets);
        const auto rows = static_cast<std::int64_t>(tokens.size());
        for (std::int64_t first = 0; first < rows; first += tile_rows_) {
            const std::int64_t count = std::min(tile_rows_, rows - first);
            logits_of(hidden + first * config_.width, count);
            cuda_cross_entropy(logits_.as<const T>(), weights_.padded_vocabulary,
                               config_.vocabulary, targets_.as<const std::int32_t>() + first, count,
                               losses_.as<float>() + first, stream_.get());
        }
        std::vector<float> host(targets.size());
        download(host, losses_.as<const float>());
        std::copy(host.begin(), host.end(), losses.begin());
    }

    void next_logits(std::span<const std::int32_t> tokens, std::span<float> out) override {
        const T* const hidden = forward(tokens, 1);
        logits_of(hidden + (static_cast<std::int64_t>(tokens.size()) - 1) * config_.width, 1);
        cuda_widen(logits_.as<const T>(), config_.vocabulary, losses_.as<float>(), stream_.get());
        download(out, losses_.as<const float>());
    }

    double attention_seconds() const override { return attention_seconds_; }

  private:
    void check_ids(const char* what, std::span<const std::int32_t> ids) const {
        for (std::size_t i = 0; i < ids.size(); ++i)
            if (ids[i] < 0 || ids[i] >= config_.vocabulary)
                throw std::invalid_argument(fmt::format("{} {} is {}, outside the vocabulary of {}",
                                                        what, i, ids[i], config_.vocabulary));
    }

    void upload(const DeviceBuffer& to, std::span<const std::int32_t> ids) {
        FA_CUDA_CHECK(cudaMemcpyAsync(to.data(), ids.data(), ids.size_bytes(),
                                      cudaMemcpyHostToDevice, stream_.get()));
    }

    /// Waits for the stream, and adds up what the attention took.
    void download(std::span<float> to, const float* from) {
        FA_CUDA_CHECK(cudaMemcpyAsync(to.data(), from, to.size_bytes(), cudaMemcpyDeviceToHost,
                                      stream_.get()));
        stream_.synchronize();
        for (const auto& [start, stop] : attention_events_)
            attention_seconds_ += seconds_between(start, stop);
        attention_events_.clear();
    }

    /// out = epilogue(x·W + b) for `rows` tokens.
    void linear(const CudaLinear<T>& layer, const T* x, std::int64_t rows, T* out,
                Epilogue epilogue) {
        matmul_.run({.rows = rows,
                     .in = layer.in,
                     .out = layer.out,
                     .layout = WeightLayout::in_out,
                     .epilogue = epilogue,
                     .x = x,
                     .weight = layer.weight,
                     .bias = layer.bias,
                     .result = out},
                    stream_.get());
    }

    /// The logits of `rows` hidden states, into the tile.
    void logits_of(const T* hidden, std::int64_t rows) {
        matmul_.run({.rows = rows,
                     .in = config_.width,
                     .out = weights_.padded_vocabulary,
                     .layout = WeightLayout::out_in,
                     .epilogue = Epilogue::none,
                     .x = hidden,
                     .weight = weights_.head,
                     .bias = nullptr,
                     .result = logits_.data()},
                    stream_.get());
    }

    void norm(const CudaNorm<T>& weights, const T* x, std::int64_t rows, T* out) {
        cuda_layer_norm(x, weights.gain, weights.bias, rows, config_.width,
                        config_.layer_norm_epsilon, out, stream_.get());
    }

    // [cuda-forward]
    /// The hidden states after the last layer norm, [rows, width].
    const T* forward(std::span<const std::int32_t> tokens, std::int64_t batch) {
        const auto rows = static_cast<std::int64_t>(tokens.size());
        if (batch < 1 || batch > max_batch_ || rows < batch || rows % batch != 0 ||
            past_ + rows / batch > max_length_)
            throw std::invalid_argument(fmt::format(
                "forward pass: {} tokens as {} sequences after {} cached, with room for {} of {}",
                rows, batch, past_, max_batch_, max_length_));
        check_ids("token", tokens);
        const std::int64_t length = rows / batch;
        T* const x = residual_.as<T>();
        T* const normed = normed_.as<T>();
        T* const inner = inner_.as<T>();

        upload(tokens_, tokens);
        cuda_embed(weights_.token_embedding, weights_.position_embedding,
                   tokens_.as<const std::int32_t>(), rows, length, past_, config_.width, x,
                   stream_.get());
        for (std::int64_t n = 0; n < config_.layers; ++n) {
            const CudaBlock<T>& block = weights_.blocks[size(n)];
            norm(block.norm_1, x, rows, normed);
            linear(block.qkv, normed, rows, qkv_of(n) + past_ * 3 * config_.width, Epilogue::bias);
            attend(n, batch, length);  // the exchangeable part: from Q, K, V into `normed`
            linear(block.projection, normed, rows, x, Epilogue::bias_add);
            norm(block.norm_2, x, rows, normed);
            linear(block.expand, normed, rows, inner, Epilogue::bias_gelu);
            linear(block.contract, inner, rows, x, Epilogue::bias_add);
        }
        norm(weights_.final_norm, x, rows, normed);
        if (keep_) past_ += length;
        return normed;
    }
    // [cuda-forward]

    /// The packed rows Q | K | V of a layer, the oldest token first.
    T* qkv_of(std::int64_t layer) {
        return qkv_.as<T>() + (keep_ ? layer * max_length_ * 3 * config_.width : 0);
    }

    void attend(std::int64_t layer, std::int64_t batch, std::int64_t length) {
        const std::int64_t width = config_.width, head_dim = config_.head_dim();
        const AttentionProblem problem{
            .batch = batch,
            .heads_q = config_.heads,
            .heads_kv = config_.heads,
            .len_q = length,
            .len_kv = past_ + length,
            .head_dim = head_dim,
            .dtype = dtype_of<T>(),
            .scale = config_.attention_scale(layer),
            .causal = true,
        };
        const T* const qkv = qkv_of(layer);
        const Strides packed{problem.len_kv * 3 * width, head_dim, 3 * width};
        const View<const T> q{qkv + past_ * 3 * width, problem.q_shape(), packed};
        const View<const T> k{qkv + width, problem.kv_shape(), packed};
        const View<const T> v{qkv + 2 * width, problem.kv_shape(), packed};
        const View<T> o{normed_.as<T>(), problem.q_shape(), {length * width, head_dim, width}};

        const Launch launch{.stream = stream_.get()};
        if (const std::string reason = attention_.why_unsupported(problem); !reason.empty())
            throw Unsupported(fmt::format("{}: {}", attention_.name, reason));
        const std::size_t needed = attention_.workspace_bytes(problem, launch);
        if (workspace_.size() < needed) {
            stream_.synchronize();
            workspace_ = DeviceBuffer();  // the old one goes first: both may not fit
            workspace_ = DeviceBuffer(needed);
        }
        attention_events_.emplace_back();
        attention_events_.back().first.record(stream_);
        attention(attention_, problem, {q, k, v, o, {}}, workspace_.bytes(), launch);
        attention_events_.back().second.record(stream_);
    }

    const Gpt2Config config_;
    const Implementation& attention_;
    const bool keep_;
    const std::int64_t max_batch_, max_length_;
    std::int64_t past_ = 0, tile_rows_ = 0;
    double attention_seconds_ = 0;
    CudaStream stream_;
    CudaGpt2Weights<T> weights_;
    LtMatmul matmul_;
    DeviceBuffer residual_, normed_, inner_;
    DeviceBuffer qkv_;  ///< [layers, max_length, 3·width] with a cache, one layer's without
    DeviceBuffer logits_, tokens_, targets_, losses_, workspace_;
    std::vector<std::pair<CudaEvent, CudaEvent>> attention_events_;
};

}  // namespace

std::unique_ptr<Gpt2Runner> make_cuda_runner(const Gpt2& model, const ForwardOptions& options,
                                             std::int64_t batch, std::int64_t max_length,
                                             Forward::Cache cache) {
    return with_element_type(options.activations, [&](auto tag) -> std::unique_ptr<Gpt2Runner> {
        return std::make_unique<CudaRunner<decltype(tag)>>(model, options, batch, max_length,
                                                           cache);
    });
}

}  // namespace fa
