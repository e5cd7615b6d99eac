#include "chapters/03_blocked_attention/blocked_attention.h"

#include <omp.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>

#include "common/aligned_buffer.h"

namespace fa {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Tile = Eigen::Map<Matrix>;
using Column = Eigen::Map<Eigen::ArrayXf>;

constexpr float MINUS_INFINITY = -std::numeric_limits<float>::infinity();

/// Rows first … first + rows − 1 of a tensor: one block.
struct Span {
    std::int64_t first, rows;
};

std::int64_t block_count(std::int64_t length, std::int64_t block) {
    return (length + block - 1) / block;
}

Span block_span(std::int64_t length, std::int64_t block, std::int64_t n) {
    return {n * block, std::min(block, length - n * block)};
}

/// One block of queries on chip: its part of Q, and the state of its online softmax (chapter 2).
struct QueryTile {
    Span span;
    Tile q;       ///< [rows, d], scaled
    Tile o;       ///< [rows, d], not yet divided by l
    Column m, l;  ///< [rows]
};

/// One block of keys on chip.
struct KeyTile {
    Span span;
    Tile k, v;  ///< [rows, d]
};

/// e^x for x <= 0, and exactly 0 for x = −∞, where Eigen's vectorised exp leaves a small number.
template <class Array>
auto exp_or_zero(const Array& x) {
    return (x < -87.33f).select(0.0f, x.exp());
}

/// What the causal mask leaves of a tile of S.
TileKind kind_of(const AttentionProblem& p, Span q, Span kv) {
    if (kv.first >= p.visible_keys(q.first + q.rows - 1)) return TileKind::skipped;
    return kv.first + kv.rows <= p.visible_keys(q.first) ? TileKind::full : TileKind::diagonal;
}

// [tile]
/// One tile of S, from product to weighted sum: the inner loop of both orders.
/// `s` is room for [queries, keys].
void attend_tile(const AttentionProblem& p, TileKind kind, const KeyTile& kv, Tile s,
                 QueryTile& q) {
    s.noalias() = q.q * kv.k.transpose();

    // Of this tile, query i sees the first visible(i) keys; the first query sees the fewest.
    const auto visible = [&](std::int64_t i) {
        return kind == TileKind::full
                   ? kv.span.rows
                   : std::clamp<std::int64_t>(p.visible_keys(q.span.first + i) - kv.span.first, 0,
                                              kv.span.rows);
    };
    for (std::int64_t i = 0; i < q.span.rows; ++i) {
        auto seen = s.row(i).head(visible(i)).array();
        float m_new = q.m[i];
        for (const float score : seen) m_new = score > m_new ? score : m_new;
        // Nothing above −∞ yet: subtract 0, so that exp(−∞ − m) is 0 and not NaN.
        const float shift = m_new == MINUS_INFINITY ? 0.0f : m_new;
        const float correction = std::exp(q.m[i] - shift);

        seen = exp_or_zero((seen - shift).eval());
        s.row(i).tail(kv.span.rows - visible(i)).setZero();
        q.l[i] = q.l[i] * correction + seen.sum();
        q.o.row(i) *= correction;
        q.m[i] = m_new;
    }

    // Keys that all queries see go through the matrix product. A masked key must not, even with
    // weight 0: its V may hold NaN, and 0·NaN is NaN.
    const std::int64_t common = visible(0);
    q.o.noalias() += s.leftCols(common) * kv.v.topRows(common);
    for (std::int64_t i = 0; i < q.span.rows; ++i)
        for (std::int64_t j = common; j < visible(i); ++j) q.o.row(i) += s(i, j) * kv.v.row(j);
}
// [tile]

/// The tiles of one thread, and all that crosses between them and the tensors in slow memory.
template <class T>
class Tiles {
  public:
    Tiles(const AttentionProblem& p, const AttentionTensors& t, BlockSizes sizes, Carver& carver,
          ScheduleObserver* observer)
        : p_(p), t_(t), sizes_(sizes), observer_(observer) {
        const auto d = static_cast<std::size_t>(p.head_dim);
        const auto rows = static_cast<std::size_t>(sizes.q),
                   keys = static_cast<std::size_t>(sizes.kv);
        q_ = carver.carve<float>(rows * d);
        o_ = carver.carve<float>(rows * d);
        m_ = carver.carve<float>(rows);
        l_ = carver.carve<float>(rows);
        k_ = carver.carve<float>(keys * d);
        v_ = carver.carve<float>(keys * d);
        s_ = carver.carve<float>(rows * keys);
    }

    /// Room for the queries of block `n`, with a fresh softmax state; Q is not loaded.
    QueryTile query_tile(std::int64_t n) const {
        const Span span = block_span(p_.len_q, sizes_.q, n);
        QueryTile tile{span, Tile(q_, span.rows, p_.head_dim), Tile(o_, span.rows, p_.head_dim),
                       Column(m_, span.rows), Column(l_, span.rows)};
        tile.o.setZero();
        tile.m.setConstant(MINUS_INFINITY);
        tile.l.setZero();
        return tile;
    }

    /// Q of the tile's queries, times the scale.
    void load_q(std::int64_t b, std::int64_t h, QueryTile& tile) const {
        load(Operand::q, tile.span.first / sizes_.q, t_.q.as<T>(), b, h, tile.span.first, tile.q);
        tile.q *= p_.effective_scale();
    }

    KeyTile load_kv(std::int64_t b, std::int64_t h, std::int64_t n) const {
        const Span span = block_span(p_.len_kv, sizes_.kv, n);
        KeyTile tile{span, Tile(k_, span.rows, p_.head_dim), Tile(v_, span.rows, p_.head_dim)};
        load(Operand::k, n, t_.k.as<T>(), b, p_.head_kv(h), span.first, tile.k);
        load(Operand::v, n, t_.v.as<T>(), b, p_.head_kv(h), span.first, tile.v);
        return tile;
    }

    /// Divides by l and writes O and LSE.
    void store_o(std::int64_t b, std::int64_t h, const QueryTile& tile) const {
        const auto o = t_.o.as<T>();
        for (std::int64_t i = 0; i < tile.span.rows; ++i) {
            const float l = tile.l[i];
            T* row = o.row(b, h, tile.span.first + i);
            for (std::int64_t c = 0; c < p_.head_dim; ++c)  // no visible key: O = 0
                row[c] = static_cast<T>(l == 0.0f ? 0.0f : tile.o(i, c) / l);
            if (t_.lse.data)
                t_.lse.row(b, h)[tile.span.first + i] =
                    l == 0.0f ? MINUS_INFINITY : tile.m[i] + std::log(l);
        }
        note_stored(Operand::o, tile.span.first / sizes_.q, tile.span.rows * p_.head_dim,
                    sizeof(T));
    }

    /// What the mask leaves of the tile of S for these two blocks; the observer is told.
    TileKind kind(std::int64_t q_block, std::int64_t kv_block) const {
        const TileKind kind = kind_of(p_, block_span(p_.len_q, sizes_.q, q_block),
                                      block_span(p_.len_kv, sizes_.kv, kv_block));
        if (observer_) observer_->tile(q_block, kv_block, kind);
        return kind;
    }

    /// Room for one tile of S.
    Tile s(std::int64_t rows, std::int64_t keys) const { return {s_, rows, keys}; }

    void note_loaded(Operand operand, std::int64_t block, std::int64_t count,
                     std::size_t size) const {
        if (observer_) observer_->loaded(operand, block, count * static_cast<std::int64_t>(size));
    }
    void note_stored(Operand operand, std::int64_t block, std::int64_t count,
                     std::size_t size) const {
        if (observer_) observer_->stored(operand, block, count * static_cast<std::int64_t>(size));
    }

  private:
    void load(Operand operand, std::int64_t block, View<const T> from, std::int64_t b,
              std::int64_t h, std::int64_t first, Tile& to) const {
        for (std::int64_t i = 0; i < to.rows(); ++i) {
            const T* row = from.row(b, h, first + i);
            for (std::int64_t c = 0; c < to.cols(); ++c) to(i, c) = static_cast<float>(row[c]);
        }
        note_loaded(operand, block, to.size(), sizeof(T));
    }

    const AttentionProblem& p_;
    const AttentionTensors& t_;
    const BlockSizes sizes_;
    ScheduleObserver* const observer_;
    float *q_, *o_, *m_, *l_, *k_, *v_, *s_;
};

// [q-outer]
/// FlashAttention-2: one block of queries meets all keys that it sees. O never leaves the chip
/// before it is finished, and query blocks do not talk to each other: any number may run at once.
template <class T>
void q_outer(const AttentionProblem& p, const Tiles<T>& tiles, BlockSizes sizes, std::int64_t b,
             std::int64_t h, std::int64_t q_block) {
    QueryTile q = tiles.query_tile(q_block);
    tiles.load_q(b, h, q);
    for (std::int64_t n = 0; n < block_count(p.len_kv, sizes.kv); ++n) {
        const TileKind kind = tiles.kind(q_block, n);
        if (kind == TileKind::skipped) continue;  // K and V are not even loaded
        const KeyTile kv = tiles.load_kv(b, h, n);
        attend_tile(p, kind, kv, tiles.s(q.span.rows, kv.span.rows), q);
    }
    tiles.store_o(b, h, q);
}
// [q-outer]

/// O, m and l of all queries of one head in slow memory, fp32, for the order that rewrites them.
template <class T>
class RunningHead {
  public:
    RunningHead(const AttentionProblem& p, const Tiles<T>& tiles, Carver& carver)
        : tiles_(tiles), len_q_(p.len_q), dim_(p.head_dim) {
        const auto rows = static_cast<std::size_t>(p.len_q);
        o_ = carver.carve<float>(rows * static_cast<std::size_t>(p.head_dim));
        m_ = carver.carve<float>(rows);
        l_ = carver.carve<float>(rows);
    }

    void clear() const {
        std::fill_n(o_, len_q_ * dim_, 0.0f);
        std::fill_n(m_, len_q_, MINUS_INFINITY);
        std::fill_n(l_, len_q_, 0.0f);
    }

    void load(std::int64_t block, QueryTile& q) const {
        q.o = o(q.span);
        q.m = Column(m_ + q.span.first, q.span.rows);
        q.l = Column(l_ + q.span.first, q.span.rows);
        tiles_.note_loaded(Operand::o, block, q.o.size(), sizeof(float));
        tiles_.note_loaded(Operand::state, block, 2 * q.span.rows, sizeof(float));
    }

    void store(std::int64_t block, const QueryTile& q) const {
        o(q.span) = q.o;
        Column(m_ + q.span.first, q.span.rows) = q.m;
        Column(l_ + q.span.first, q.span.rows) = q.l;
        tiles_.note_stored(Operand::o, block, q.o.size(), sizeof(float));
        tiles_.note_stored(Operand::state, block, 2 * q.span.rows, sizeof(float));
    }

  private:
    Tile o(Span span) const { return {o_ + span.first * dim_, span.rows, dim_}; }

    const Tiles<T>& tiles_;
    const std::int64_t len_q_, dim_;
    float *o_, *m_, *l_;  // [len_q, d], [len_q], [len_q]
};

// [kv-outer]
/// FlashAttention: one block of keys meets all queries that see it. K and V are read once, but O, m
/// and l of every query block come in and go out again for every block of keys. (The paper's O is
/// divided by l at every turn; ours once, in a last pass.)
template <class T>
void kv_outer(const AttentionProblem& p, const Tiles<T>& tiles, const RunningHead<T>& running,
              BlockSizes sizes, std::int64_t b, std::int64_t h) {
    const std::int64_t q_blocks = block_count(p.len_q, sizes.q);
    running.clear();
    for (std::int64_t n = 0; n < block_count(p.len_kv, sizes.kv); ++n) {
        const KeyTile kv = tiles.load_kv(b, h, n);
        for (std::int64_t i = 0; i < q_blocks; ++i) {
            const TileKind kind = tiles.kind(i, n);
            if (kind == TileKind::skipped) continue;
            QueryTile q = tiles.query_tile(i);
            tiles.load_q(b, h, q);
            running.load(i, q);
            attend_tile(p, kind, kv, tiles.s(q.span.rows, kv.span.rows), q);
            running.store(i, q);
        }
    }
    for (std::int64_t i = 0; i < q_blocks; ++i) {
        QueryTile q = tiles.query_tile(i);
        running.load(i, q);
        tiles.store_o(b, h, q);
    }
}
// [kv-outer]

/// A thread's share of the workspace, in bytes: the same carving, only counted.
template <class T>
std::size_t bytes_per_thread(const AttentionProblem& p, LoopOrder order, BlockSizes sizes) {
    Carver counter;
    const AttentionTensors none;
    const Tiles<T> tiles(p, none, sizes, counter, nullptr);
    if (order == LoopOrder::kv_outer) RunningHead<T>(p, tiles, counter);
    return counter.used();
}

template <class T>
void run(const AttentionProblem& p, const AttentionTensors& t, LoopOrder order, BlockSizes sizes,
         std::span<std::byte> workspace, int threads, ScheduleObserver* observer) {
    const std::size_t share = bytes_per_thread<T>(p, order, sizes);
    // K/V blocks of one head follow one another through the same O: there only heads run at once.
    const std::int64_t units =
        order == LoopOrder::q_outer ? block_count(p.len_q, sizes.q) : std::int64_t{1};

#pragma omp parallel num_threads(threads)
    {
        Carver carver(
            workspace.subspan(share * static_cast<std::size_t>(omp_get_thread_num()), share));
        const Tiles<T> tiles(p, t, sizes, carver, observer);
        if (order == LoopOrder::q_outer) {
            // Under a causal mask the last query blocks are the longest: they go first.
#pragma omp for collapse(3) schedule(dynamic)
            for (std::int64_t b = 0; b < p.batch; ++b)
                for (std::int64_t h = 0; h < p.heads_q; ++h)
                    for (std::int64_t n = units - 1; n >= 0; --n) q_outer(p, tiles, sizes, b, h, n);
        } else {
            const RunningHead<T> running(p, tiles, carver);
#pragma omp for collapse(2) schedule(dynamic)
            for (std::int64_t b = 0; b < p.batch; ++b)
                for (std::int64_t h = 0; h < p.heads_q; ++h)
                    kv_outer(p, tiles, running, sizes, b, h);
        }
    }
}

int thread_count(const Launch& launch) {
    return launch.threads > 0 ? launch.threads : omp_get_max_threads();
}

template <LoopOrder ORDER>
std::size_t default_workspace_bytes(const AttentionProblem& p, const Launch& launch) {
    return blocked_workspace_bytes(p, ORDER, BlockSizes{}, thread_count(launch));
}

template <LoopOrder ORDER>
void run_default(const AttentionProblem& p, const AttentionTensors& t,
                 std::span<std::byte> workspace, const Launch& launch) {
    blocked_attention(p, t, ORDER, BlockSizes{}, workspace, thread_count(launch));
}

std::string supports_all(const AttentionProblem&) {
    return {};
}

}  // namespace

BlockSizes BlockSizes::for_on_chip_memory(std::int64_t elements, std::int64_t head_dim) {
    const std::int64_t keys = std::max<std::int64_t>(1, block_count(elements, 4 * head_dim));
    return {.q = std::min(keys, head_dim), .kv = keys};
}

std::size_t blocked_workspace_bytes(const AttentionProblem& problem, LoopOrder order,
                                    BlockSizes sizes, int threads) {
    return static_cast<std::size_t>(threads) * with_element_type(problem.dtype, [&](auto element) {
               return bytes_per_thread<decltype(element)>(problem, order, sizes);
           });
}

void blocked_attention(const AttentionProblem& problem, const AttentionTensors& tensors,
                       LoopOrder order, BlockSizes sizes, std::span<std::byte> workspace,
                       int threads, ScheduleObserver* observer) {
    with_element_type(problem.dtype, [&](auto element) {
        run<decltype(element)>(problem, tensors, order, sizes, workspace, threads, observer);
    });
}

constinit const Implementation CPU_BLOCKED{
    .name = "cpu_blocked",
    .chapter = 3,
    .device = Device::cpu,
    .summary = "64x64 tiles with Eigen, Q outside (FlashAttention-2)",
    .why_unsupported = supports_all,
    .workspace_bytes = default_workspace_bytes<LoopOrder::q_outer>,
    .run = run_default<LoopOrder::q_outer>,
};

constinit const Implementation CPU_BLOCKED_KV_OUTER{
    .name = "cpu_blocked_kv_outer",
    .chapter = 3,
    .device = Device::cpu,
    .summary = "64x64 tiles with Eigen, K and V outside (FlashAttention)",
    .why_unsupported = supports_all,
    .workspace_bytes = default_workspace_bytes<LoopOrder::kv_outer>,
    .run = run_default<LoopOrder::kv_outer>,
};

}  // namespace fa
