#include "chapters/07_gpt2_124m/cross_entropy.h"

#include <fmt/format.h>
#include <omp.h>

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "chapters/07_gpt2_124m/rounding.h"

namespace fa {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMatrixMap = Eigen::Map<const Matrix>;
using Row = Eigen::Map<Eigen::ArrayXf>;

/// Tokens and words of one tile of logits: 512 KiB, which stays in the L2 cache until its
/// exponentials are summed. Speed only, never correctness.
constexpr std::int64_t TILE_TOKENS = 256, TILE_WORDS = 512;

/// The words that one thread takes at a time for a single token's logits.
constexpr std::int64_t GROUP_WORDS = 1024;

/// log Σ exp of a row, tile by tile (chapter 2).
struct RunningSum {
    float max = -std::numeric_limits<float>::infinity();
    double sum = 0;  ///< Σ exp(logit − max)

    // [recurrence]
    /// Takes in a tile's logits, which are overwritten.
    void add(Row tile) {
        const float new_max = std::max(max, tile.maxCoeff());
        tile = (tile - new_max).exp();
        // exp(−∞ − x) of the first tile is std::exp's, hence exactly 0.
        sum = sum * std::exp(static_cast<double>(max) - static_cast<double>(new_max)) +
              static_cast<double>(tile.sum());
        max = new_max;
    }
    // [recurrence]

    double log() const { return static_cast<double>(max) + std::log(sum); }
};

ConstMatrixMap head_of(const Gpt2& model) {
    return {model.weights.head().data(), model.config.vocabulary, model.config.width};
}

/// The losses of at most TILE_TOKENS tokens, by one thread.
void cross_entropy_block(const ConstMatrixMap& head, const ConstMatrixMap& hidden,
                         const std::int32_t* targets, DType activations, double* losses,
                         Matrix& memory) {
    const std::int64_t rows = hidden.rows(), vocabulary = head.rows();
    std::array<RunningSum, TILE_TOKENS> sums;
    std::array<float, TILE_TOKENS> target_logits;
    for (std::int64_t first = 0; first < vocabulary; first += TILE_WORDS) {
        const std::int64_t words = std::min(TILE_WORDS, vocabulary - first);
        Eigen::Map<Matrix> tile(memory.data(), rows, words);
        tile.noalias() = hidden * head.middleRows(first, words).transpose();
        round_to(activations, {tile.data(), static_cast<std::size_t>(tile.size())});
        for (std::int64_t i = 0; i < rows; ++i) {
            const std::int64_t target = targets[i] - first;
            if (target >= 0 && target < words)
                target_logits[static_cast<std::size_t>(i)] = tile(i, target);
            sums[static_cast<std::size_t>(i)].add({tile.row(i).data(), words});
        }
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i)
        losses[i] = sums[i].log() - static_cast<double>(target_logits[i]);
}

}  // namespace

void cross_entropy(const Gpt2& model, std::span<const float> hidden,
                   std::span<const std::int32_t> targets, const Arithmetic& arithmetic,
                   std::span<double> losses) {
    const auto count = static_cast<std::int64_t>(targets.size());
    const std::int64_t width = model.config.width;
    if (losses.size() != targets.size() || hidden.size() != targets.size() * std::size_t(width))
        throw std::invalid_argument(
            fmt::format("cross-entropy: {} values of width {} for {} targets and {} losses",
                        hidden.size(), width, targets.size(), losses.size()));
    for (std::size_t i = 0; i < targets.size(); ++i)
        if (targets[i] < 0 || targets[i] >= model.config.vocabulary)
            throw std::invalid_argument(
                fmt::format("cross-entropy: target {} is {}, outside the vocabulary of {}", i,
                            targets[i], model.config.vocabulary));
    const ConstMatrixMap head = head_of(model);
    const int threads = arithmetic.thread_count();
    // One for each thread, taken here: no exception may leave a parallel region.
    std::vector<Matrix> tiles(static_cast<std::size_t>(threads));
    for (Matrix& tile : tiles)
        tile.resize(std::min(TILE_TOKENS, count), std::min(TILE_WORDS, model.config.vocabulary));
#pragma omp parallel num_threads(threads)
    {
        Matrix& tile = tiles[static_cast<std::size_t>(omp_get_thread_num())];
#pragma omp for schedule(dynamic)
        for (std::int64_t i = 0; i < count; i += TILE_TOKENS) {
            const ConstMatrixMap block(hidden.data() + i * width, std::min(TILE_TOKENS, count - i),
                                       width);
            cross_entropy_block(head, block, targets.data() + i, arithmetic.activations,
                                losses.data() + i, tile);
        }
    }
}

void logits(const Gpt2& model, std::span<const float> hidden, const Arithmetic& arithmetic,
            std::span<float> out) {
    const std::int64_t vocabulary = model.config.vocabulary, width = model.config.width;
    if (static_cast<std::int64_t>(hidden.size()) != width ||
        static_cast<std::int64_t>(out.size()) != vocabulary)
        throw std::invalid_argument(fmt::format("logits: {} values of width {} for {} words of {}",
                                                hidden.size(), width, out.size(), vocabulary));
    const ConstMatrixMap head = head_of(model);
    const Eigen::Map<const Eigen::VectorXf> x(hidden.data(), width);
    Eigen::Map<Eigen::VectorXf> result(out.data(), vocabulary);
#pragma omp parallel for schedule(dynamic) num_threads(arithmetic.thread_count())
    for (std::int64_t i = 0; i < vocabulary; i += GROUP_WORDS) {
        const std::int64_t words = std::min(GROUP_WORDS, vocabulary - i);
        result.segment(i, words).noalias() = head.middleRows(i, words) * x;
    }
    round_to(arithmetic.activations, out);
}

}  // namespace fa
