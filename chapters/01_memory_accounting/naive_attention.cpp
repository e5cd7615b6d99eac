#include "chapters/01_memory_accounting/naive_attention.h"

#include <fmt/format.h>
#include <omp.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "common/aligned_buffer.h"

namespace fa {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Rows = Eigen::Map<Matrix, Eigen::Unaligned, Eigen::OuterStride<>>;
using ConstRows = Eigen::Map<const Matrix, Eigen::Unaligned, Eigen::OuterStride<>>;
using Vector = Eigen::Map<Eigen::ArrayXf>;
using ConstVector = Eigen::Map<const Eigen::ArrayXf>;

constexpr float MINUS_INFINITY = -std::numeric_limits<float>::infinity();

/// Query rows that one thread takes at a time. Speed only, never correctness: 128 rows pay for
/// packing K and V, and short sequences still give every thread something to do. The cut does not
/// depend on the number of threads, hence neither do the results.
constexpr std::int64_t BLOCK_ROWS = 128;

constexpr float SMALLEST_NORMAL = std::numeric_limits<float>::min();

/// A block of query rows of one head, and the keys that count for it.
struct Block {
    std::int64_t batch, head, first, count;
    std::int64_t common_keys;  ///< visible to every row: those of the first row
    std::int64_t keys;         ///< visible to some row: those of the last row

    Block(const AttentionProblem& p, std::int64_t batch_, std::int64_t head_, std::int64_t first_)
        : batch(batch_),
          head(head_),
          first(first_),
          count(std::min(BLOCK_ROWS, p.len_q - first_)),
          common_keys(p.visible_keys(first)),
          keys(p.visible_keys(first + count - 1)) {}
};

/// S and P of all heads, and fp32 memory per thread for what is not fp32 in memory.
template <class Score>
struct Workspace {
    Score *s, *p;  ///< [batch, heads_q, len_q, len_kv]
    std::size_t bytes;

    /// Pieces of one thread: q and o [BLOCK_ROWS, d], kv [len_kv, d], scores [BLOCK_ROWS, len_kv].
    struct Scratch {
        float *q, *o, *kv, *scores;
    };

    /// With empty `memory`: only counts.
    Workspace(const AttentionProblem& problem, int threads, std::span<std::byte> memory) {
        const auto len_q = static_cast<std::size_t>(problem.len_q);
        const auto len_kv = static_cast<std::size_t>(problem.len_kv);
        const auto dim = static_cast<std::size_t>(problem.head_dim);
        const auto heads = static_cast<std::size_t>(problem.batch * problem.heads_q);
        const std::size_t rows = std::min(static_cast<std::size_t>(BLOCK_ROWS), len_q);
        const std::size_t widen_input = problem.dtype == DType::f32 ? 0 : 1;
        const std::size_t widen_score = std::is_same_v<Score, float> ? 0 : 1;
        q_ = widen_input * rows * dim;
        kv_ = widen_input * len_kv * dim;
        constexpr std::size_t CACHE_LINE = AlignedBuffer::ALIGNMENT / sizeof(float);
        per_thread_ =
            (2 * q_ + kv_ + widen_score * rows * len_kv + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;

        Carver carver(memory);
        s = carver.carve<Score>(heads * len_q * len_kv);
        p = carver.carve<Score>(heads * len_q * len_kv);
        scratch_ = carver.carve<float>(per_thread_ * static_cast<std::size_t>(threads));
        bytes = carver.used();
    }

    Scratch of_thread(int thread) const {
        float* const start = scratch_ + per_thread_ * static_cast<std::size_t>(thread);
        return {start, start + q_, start + 2 * q_, start + 2 * q_ + kv_};
    }

  private:
    float* scratch_;
    std::size_t q_, kv_, per_thread_;  // floats
};

template <class From, class To>
void convert(const From* from, std::int64_t count, To* to) {
    std::transform(from, from + count, to,
                   [](From x) { return static_cast<To>(static_cast<float>(x)); });
}

/// Rows first … first + count − 1 of one head in fp32: the tensor itself if it is fp32, else a
/// copy.
template <class T>
ConstRows load(const View<const T>& tensor, std::int64_t batch, std::int64_t head,
               std::int64_t first, std::int64_t count, [[maybe_unused]] float* scratch) {
    const std::int64_t dim = tensor.shape.dim;
    if constexpr (std::is_same_v<T, float>) {
        return {tensor.row(batch, head, first), count, dim,
                Eigen::OuterStride<>(tensor.strides.token)};
    } else {
        for (std::int64_t i = 0; i < count; ++i)
            convert(tensor.row(batch, head, first + i), dim, scratch + i * dim);
        return {scratch, count, dim, Eigen::OuterStride<>(dim)};
    }
}

/// Step 1: S = scale·Q·Kᵀ. A score is a sum over d alone, so NaN in a masked key stays where it is
/// masked.
// [scores]
template <class Score>
void compute_scores(const ConstRows& q, const ConstRows& k, float scale, Score* s,
                    std::int64_t len_kv, [[maybe_unused]] float* scratch) {
    if constexpr (std::is_same_v<Score, float>) {
        Rows(s, q.rows(), k.rows(), Eigen::OuterStride<>(len_kv)).noalias() =
            scale * q * k.transpose();
    } else {
        Rows product(scratch, q.rows(), k.rows(), Eigen::OuterStride<>(k.rows()));
        product.noalias() = q * k.transpose();
        for (std::int64_t i = 0; i < q.rows(); ++i)
            for (std::int64_t j = 0; j < k.rows(); ++j)
                s[i * len_kv + j] = Score(scale * static_cast<float>(Score(product(i, j))));
    }
}
// [scores]

/// Step 2 for one row: P = softmax(S) over the keys that it sees.
/// @return the row's LSE: −∞ if no visible score is above −∞, and then P is zero
// [softmax]
float softmax(const ConstVector& s, Vector p) {
    const float max = s.size() == 0 ? MINUS_INFINITY : s.maxCoeff();
    // −∞ − (−∞) is NaN; a row with nothing but −∞ has the weights exp(−∞ − 0) = 0.
    const float shift = max == MINUS_INFINITY ? 0.0f : max;
    p = (s - shift).exp();
    // Eigen's vector exp clamps its argument and gives a tiny number for exp(−∞): what is below the
    // normal numbers becomes 0. NaN compares false and stays; it makes the sum, hence the row, NaN.
    for (float& weight : p) weight = weight < SMALLEST_NORMAL ? 0.0f : weight;
    const float sum = p.sum();
    if (sum == 0) return MINUS_INFINITY;
    p /= sum;
    return shift + std::log(sum);
}
// [softmax]

/// Step 2 for S and P as they lie in memory: 16-bit scores are widened, and weights rounded.
template <class Score>
float softmax(const Score* s, Score* p, std::int64_t visible, [[maybe_unused]] float* scratch) {
    if constexpr (std::is_same_v<Score, float>) {
        return softmax(ConstVector(s, visible), Vector(p, visible));
    } else {
        convert(s, visible, scratch);
        const float lse = softmax(ConstVector(scratch, visible), Vector(scratch, visible));
        convert(scratch, visible, p);
        return lse;
    }
}

/// The P of a block in fp32: itself, or a widened copy. Masked elements are not set and never read.
template <class Score>
ConstRows load_weights(const Score* p, const AttentionProblem& problem, const Block& block,
                       [[maybe_unused]] float* scratch) {
    if constexpr (std::is_same_v<Score, float>) {
        return {p, block.count, block.keys, Eigen::OuterStride<>(problem.len_kv)};
    } else {
        for (std::int64_t i = 0; i < block.count; ++i)
            convert(p + i * problem.len_kv, problem.visible_keys(block.first + i),
                    scratch + i * block.keys);
        return {scratch, block.count, block.keys, Eigen::OuterStride<>(block.keys)};
    }
}

/// Step 3: O = P·V. Only the keys that all rows see go through one matrix product: a masked key has
/// weight 0, but 0·NaN is NaN. What remains, in a causal problem, is a triangle on the diagonal.
// [output]
void compute_output(const ConstRows& p, const ConstRows& v, const AttentionProblem& problem,
                    const Block& block, Rows& o) {
    o.noalias() = p.leftCols(block.common_keys) * v.topRows(block.common_keys);
    for (std::int64_t i = 0; i < block.count; ++i) {
        const std::int64_t rest = problem.visible_keys(block.first + i) - block.common_keys;
        if (rest > 0)
            o.row(i).noalias() +=
                p.row(i).segment(block.common_keys, rest) * v.middleRows(block.common_keys, rest);
    }
}
// [output]

/// The three steps for one block of query rows.
template <class Score, class T>
void attend(const AttentionProblem& problem, const AttentionTensors& t, const Block& block,
            const Workspace<Score>& workspace, int thread) {
    const auto scratch = workspace.of_thread(thread);
    const std::int64_t batch = block.batch, head = block.head, head_kv = problem.head_kv(head);
    const std::int64_t len_kv = problem.len_kv;
    const std::int64_t row = (batch * problem.heads_q + head) * problem.len_q + block.first;
    Score* const s = workspace.s + row * len_kv;
    Score* const p = workspace.p + row * len_kv;

    compute_scores(load(t.q.as<T>(), batch, head, block.first, block.count, scratch.q),
                   load(t.k.as<T>(), batch, head_kv, 0, block.keys, scratch.kv),
                   problem.effective_scale(), s, len_kv, scratch.scores);

    std::array<float, BLOCK_ROWS> lse;
    for (std::int64_t i = 0; i < block.count; ++i)
        lse[static_cast<std::size_t>(i)] = softmax(
            s + i * len_kv, p + i * len_kv, problem.visible_keys(block.first + i), scratch.scores);

    const View<T> out = t.o.as<T>();
    constexpr bool IN_PLACE = std::is_same_v<T, float>;
    float* o_memory = scratch.o;
    if constexpr (IN_PLACE) o_memory = out.row(batch, head, block.first);
    Rows o(o_memory, block.count, problem.head_dim,
           Eigen::OuterStride<>(IN_PLACE ? out.strides.token : problem.head_dim));
    compute_output(load_weights(p, problem, block, scratch.scores),
                   load(t.v.as<T>(), batch, head_kv, 0, block.keys, scratch.kv), problem, block, o);

    for (std::int64_t i = 0; i < block.count; ++i) {
        const float row_lse = lse[static_cast<std::size_t>(i)];
        // Without any weight, O is 0 whatever V holds, where 0·∞ above may have made it NaN.
        if (row_lse == MINUS_INFINITY) o.row(i).setZero();
        if constexpr (!IN_PLACE)
            convert(scratch.o + i * problem.head_dim, problem.head_dim,
                    out.row(batch, head, block.first + i));
        if (t.lse.data) t.lse.row(batch, head)[block.first + i] = row_lse;
    }
}

std::string why_unsupported(const AttentionProblem& p) {
    constexpr std::int64_t LIMIT = std::int64_t{1}
                                   << 58;  // elements; bytes of S and P stay below 2^62
    if (p.batch * p.heads_q * p.len_q * p.len_kv <= LIMIT) return {};
    return fmt::format("S of {}·{}·{}·{} elements passes 2^58", p.batch, p.heads_q, p.len_q,
                       p.len_kv);
}

template <class Score>
std::size_t workspace_bytes(const AttentionProblem& problem, const Launch& launch) {
    return Workspace<Score>(problem, launch.thread_count(), {}).bytes;
}

template <class Score>
void run(const AttentionProblem& problem, const AttentionTensors& tensors,
         std::span<std::byte> memory, const Launch& launch) {
    const int threads = launch.thread_count();
    const Workspace<Score> workspace(problem, threads, memory);
    with_element_type(problem.dtype, [&](auto element) {
        using T = decltype(element);
        const std::int64_t blocks = (problem.len_q + BLOCK_ROWS - 1) / BLOCK_ROWS;
        // Causal blocks differ in length, so threads take the next one when they are done. The long
        // ones come first, so that no thread is left alone with one at the end.
#pragma omp parallel for collapse(3) schedule(dynamic) num_threads(threads)
        for (std::int64_t n = blocks - 1; n >= 0; --n)
            for (std::int64_t b = 0; b < problem.batch; ++b)
                for (std::int64_t h = 0; h < problem.heads_q; ++h)
                    attend<Score, T>(problem, tensors, Block(problem, b, h, n * BLOCK_ROWS),
                                     workspace, omp_get_thread_num());
    });
}

}  // namespace

constinit const Implementation CPU_NAIVE{
    .name = "cpu_naive",
    .chapter = 1,
    .device = Device::cpu,
    .summary = "three steps with Eigen, S and P in memory in fp32",
    .why_unsupported = why_unsupported,
    .workspace_bytes = workspace_bytes<float>,
    .run = run<float>,
};

constinit const Implementation CPU_NAIVE_BF16_SCORES{
    .name = "cpu_naive_bf16_scores",
    .chapter = 7,
    .device = Device::cpu,
    .summary = "three steps with Eigen, S and P rounded to bf16",
    .rounds_scores = true,
    .why_unsupported = why_unsupported,
    .workspace_bytes = workspace_bytes<BFloat16>,
    .run = run<BFloat16>,
};

}  // namespace fa
