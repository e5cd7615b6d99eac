#include "chapters/07_gpt2_124m/layers.h"

#include <omp.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numbers>

#include "chapters/07_gpt2_124m/rounding.h"

namespace fa {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixMap = Eigen::Map<Matrix>;
using ConstMatrixMap = Eigen::Map<const Matrix>;
using ArrayMap = Eigen::Map<Eigen::ArrayXf>;
using ConstArrayMap = Eigen::Map<const Eigen::ArrayXf>;
using ConstRowMap = Eigen::Map<const Eigen::RowVectorXf>;

/// The piece of a result that one thread computes at a time. Speed only, never correctness: 256
/// rows pay for packing W, the fp32 tile (256 KiB) stays in the L2 cache for the step after the
/// product, and there are enough pieces for every thread.
constexpr std::int64_t BLOCK_ROWS = 256, BLOCK_COLS = 256;

/// Rows of a token-wise operation that one thread takes at a time.
constexpr std::int64_t BLOCK_TOKENS = 64;

std::span<float> row_span(float* data, std::int64_t row, std::int64_t width) {
    return {data + row * width, static_cast<std::size_t>(width)};
}

ConstArrayMap array(const std::vector<float>& values) {
    return {values.data(), static_cast<Eigen::Index>(values.size())};
}

}  // namespace

int Arithmetic::thread_count() const {
    return threads > 0 ? threads : omp_get_max_threads();
}

void embed(const Gpt2Weights& weights, std::int64_t width, std::span<const std::int32_t> tokens,
           std::int64_t sequence_length, std::int64_t first_position, float* out,
           const Arithmetic& arithmetic) {
    const auto rows = static_cast<std::int64_t>(tokens.size());
#pragma omp parallel for schedule(dynamic, BLOCK_TOKENS) num_threads(arithmetic.thread_count())
    for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t token = tokens[static_cast<std::size_t>(i)];
        const std::int64_t position = first_position + i % sequence_length;
        ArrayMap(out + i * width, width) =
            ConstArrayMap(weights.token_embedding.data() + token * width, width) +
            ConstArrayMap(weights.position_embedding.data() + position * width, width);
        round_to(arithmetic.activations, row_span(out, i, width));
    }
}

// [layer_norm]
void layer_norm(const NormWeights& norm, const float* x, std::int64_t rows, float epsilon,
                float* out, const Arithmetic& arithmetic) {
    const auto width = static_cast<std::int64_t>(norm.gain.size());
    // A copy in aligned memory, one for each thread: where a row lies must not decide in which
    // order Eigen adds it up.
    const int threads = arithmetic.thread_count();
    std::vector<Eigen::ArrayXf> copies(static_cast<std::size_t>(threads));
    for (Eigen::ArrayXf& copy : copies) copy.resize(width);
#pragma omp parallel num_threads(threads)
    {
        Eigen::ArrayXf& row = copies[static_cast<std::size_t>(omp_get_thread_num())];
#pragma omp for schedule(dynamic, BLOCK_TOKENS)
        for (std::int64_t i = 0; i < rows; ++i) {
            row = ConstArrayMap(x + i * width, width);
            // mean(x²) − mean(x)² cancels to nothing, or less, when the mean is large beside the
            // spread. So the mean goes first, and then the mean of what is left, which is the
            // rounding of the first (the idea of the "corrected two-pass" sum: Chan, Golub, LeVeque
            // 1983, equation 1.7).
            row -= row.mean();
            row -= row.mean();
            const float deviation = std::sqrt(row.square().mean() + epsilon);
            ArrayMap(out + i * width, width) =
                row / deviation * array(norm.gain) + array(norm.bias);
            round_to(arithmetic.activations, row_span(out, i, width));
        }
    }
}
// [layer_norm]

// [gelu]
void gelu_tanh(std::span<float> values) {
    const float root = std::sqrt(2.0f / std::numbers::pi_v<float>);
    ArrayMap x(values.data(), static_cast<Eigen::Index>(values.size()));
    // (1 + tanh u)/2 = 1/(1 + exp(−2u)): one exponential, and no cancellation for negative x. The
    // numerator is held above −30, where the result is below fp32's normal numbers anyway: −∞·0 is
    // NaN, and −30·0 is not.
    x = x.max(-30.0f) / (1.0f + (-2.0f * root * x * (1.0f + 0.044715f * x.square())).exp());
}
// [gelu]

void linear(const LinearWeights& layer, const float* x, std::int64_t rows, float* out,
            Finish finish, const Arithmetic& arithmetic) {
    const ConstMatrixMap in(x, rows, layer.in);
    const ConstMatrixMap weight(layer.weight.data(), layer.in, layer.out);
    const ConstRowMap bias(layer.bias.data(), layer.out);
    MatrixMap result(out, rows, layer.out);
    const DType activations = arithmetic.activations;
    const int threads = arithmetic.thread_count();
    // One for each thread, taken here: no exception may leave a parallel region.
    std::vector<Matrix> tiles(static_cast<std::size_t>(threads));
    for (Matrix& tile : tiles)
        tile.resize(std::min(BLOCK_ROWS, rows), std::min(BLOCK_COLS, layer.out));
#pragma omp parallel num_threads(threads)
    {
        Matrix& memory = tiles[static_cast<std::size_t>(omp_get_thread_num())];
#pragma omp for collapse(2) schedule(dynamic)
        for (std::int64_t i = 0; i < rows; i += BLOCK_ROWS) {
            for (std::int64_t j = 0; j < layer.out; j += BLOCK_COLS) {
                const std::int64_t m = std::min(BLOCK_ROWS, rows - i);
                const std::int64_t n = std::min(BLOCK_COLS, layer.out - j);
                MatrixMap tile(memory.data(), m, n);
                tile.noalias() = in.middleRows(i, m) * weight.middleCols(j, n);
                tile.rowwise() += bias.segment(j, n);
                const std::span<float> values{tile.data(), static_cast<std::size_t>(m * n)};
                round_to(activations, values);
                if (finish == Finish::gelu) gelu_tanh(values);
                if (finish == Finish::add) tile += result.block(i, j, m, n);
                if (finish != Finish::store) round_to(activations, values);
                result.block(i, j, m, n) = tile;
            }
        }
    }
}

}  // namespace fa
