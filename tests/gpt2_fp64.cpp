#include "tests/gpt2_fp64.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fa::testing {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

std::size_t size(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

Row norm(const NormWeights& weights, const Row& x, float epsilon) {
    const auto n = static_cast<double>(x.size());
    double mean = 0, variance = 0;
    for (const double value : x) mean += value / n;
    for (const double value : x) variance += (value - mean) * (value - mean) / n;
    Row out;
    for (std::size_t i = 0; i < x.size(); ++i)
        out.push_back((x[i] - mean) / std::sqrt(variance + double{epsilon}) *
                          double{weights.gain[i]} +
                      double{weights.bias[i]});
    return out;
}

Row linear(const LinearWeights& layer, const Row& x) {
    Row out(layer.bias.begin(), layer.bias.end());
    for (std::size_t i = 0; i < x.size(); ++i)
        for (std::size_t j = 0; j < out.size(); ++j)
            out[j] += x[i] * double{layer.weight[i * out.size() + j]};
    return out;
}

double gelu(double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

void add(Row& x, const Row& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

/// One head's output for query i: over keys 0 … i, by the definition.
void attend(const Rows& qkv, std::size_t i, std::size_t head, const Gpt2Config& config,
            double scale, Row& out) {
    const std::size_t dim = size(config.head_dim()), width = size(config.width);
    Row weights;
    double max = -INFINITY, sum = 0;
    for (std::size_t j = 0; j <= i; ++j) {
        double score = 0;
        for (std::size_t c = head * dim; c < (head + 1) * dim; ++c)
            score += qkv[i][c] * qkv[j][width + c];
        weights.push_back(score * scale);
        max = std::max(max, weights.back());
    }
    for (double& weight : weights) sum += weight = std::exp(weight - max);
    for (std::size_t j = 0; j <= i; ++j)
        for (std::size_t c = head * dim; c < (head + 1) * dim; ++c)
            out[c] += weights[j] / sum * qkv[j][2 * width + c];
}

}  // namespace

std::vector<double> gpt2_logits_fp64(const Gpt2& model, std::span<const std::int32_t> tokens) {
    const Gpt2Config& config = model.config;
    const std::size_t width = size(config.width);
    Rows x(tokens.size(), Row(width));
    for (std::size_t i = 0; i < tokens.size(); ++i)
        for (std::size_t c = 0; c < width; ++c)
            x[i][c] = double{model.weights.token_embedding[size(tokens[i]) * width + c]} +
                      double{model.weights.position_embedding[i * width + c]};
    for (std::int64_t n = 0; n < config.layers; ++n) {
        const BlockWeights& block = model.weights.blocks[size(n)];
        double scale = 1;
        if (config.scale_by_head_dim) scale /= std::sqrt(static_cast<double>(config.head_dim()));
        if (config.scale_by_layer_index) scale /= static_cast<double>(n + 1);
        Rows qkv;
        for (const Row& row : x)
            qkv.push_back(linear(block.qkv, norm(block.norm_1, row, config.layer_norm_epsilon)));
        for (std::size_t i = 0; i < x.size(); ++i) {
            Row attended(width);
            for (std::size_t head = 0; head < size(config.heads); ++head)
                attend(qkv, i, head, config, scale, attended);
            add(x[i], linear(block.projection, attended));
            Row inner = linear(block.expand, norm(block.norm_2, x[i], config.layer_norm_epsilon));
            for (double& value : inner) value = gelu(value);
            add(x[i], linear(block.contract, inner));
        }
    }
    std::vector<double> logits;
    for (const Row& row : x) {
        const Row hidden = norm(model.weights.final_norm, row, config.layer_norm_epsilon);
        for (std::size_t word = 0; word < size(config.vocabulary); ++word) {
            double logit = 0;
            for (std::size_t c = 0; c < width; ++c)
                logit += hidden[c] * double{model.weights.head()[word * width + c]};
            logits.push_back(logit);
        }
    }
    return logits;
}

std::vector<double> gpt2_losses_fp64(const Gpt2& model, std::span<const std::int32_t> tokens,
                                     std::span<const std::int32_t> targets) {
    const std::vector<double> logits = gpt2_logits_fp64(model, tokens);
    const std::size_t words = size(model.config.vocabulary);
    std::vector<double> losses;
    for (std::size_t i = 0; i < targets.size(); ++i) {
        const std::span<const double> row = std::span(logits).subspan(i * words, words);
        const double max = *std::max_element(row.begin(), row.end());
        double sum = 0;
        for (const double logit : row) sum += std::exp(logit - max);
        losses.push_back(max + std::log(sum) - row[size(targets[i])]);
    }
    return losses;
}

}  // namespace fa::testing
