#pragma once
/// @file
/// The tiles of one thread, and all that crosses between them and the tensors in slow memory.
/// Shared by the schedules of this chapter, inside its library only: it speaks Eigen.

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>

#include "chapters/03_blocked_attention/schedule.h"
#include "common/aligned_buffer.h"
#include "common/attention.h"
#include "common/cost_model.h"

namespace fa::tiles {

/// Row-major, as all tensors of the course are.
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
/// A Matrix in a workspace.
using Tile = Eigen::Map<Matrix>;
/// A number for each row of a tile, in a workspace.
using Column = Eigen::Map<Eigen::ArrayXf>;

inline constexpr float MINUS_INFINITY = -std::numeric_limits<float>::infinity();

/// Rows first … first + rows − 1 of a tensor: one block.
struct Span {
    std::int64_t first, rows;
};

/// Blocks that `length` rows make, the last one perhaps shorter.
inline std::int64_t block_count(std::int64_t length, std::int64_t block) {
    return (length + block - 1) / block;
}

/// The rows of block `n`.
inline Span block_span(std::int64_t length, std::int64_t block, std::int64_t n) {
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

/// What the causal mask leaves of a tile of S.
inline TileKind kind_of(const AttentionProblem& p, Span q, Span kv) {
    if (kv.first >= p.visible_keys(q.first + q.rows - 1)) return TileKind::skipped;
    return kv.first + kv.rows <= p.visible_keys(q.first) ? TileKind::full : TileKind::diagonal;
}

/// How many keys of a block query `i` of the problem sees: the first so many.
inline std::int64_t visible_in(const AttentionProblem& p, Span kv, std::int64_t i) {
    return std::clamp<std::int64_t>(p.visible_keys(i) - kv.first, 0, kv.rows);
}

/// The largest of `scores` and `least`. Of a NaN among them Eigen may make anything; its weight
/// will be NaN whatever is subtracted, and so will be its row.
template <class Scores>
float larger_maximum(const Scores& scores, float least) {
    if (scores.size() == 0) return least;
    const float largest = scores.maxCoeff();
    return largest > least ? largest : least;
}

/// x = e^x, for x <= 0 in memory without gaps. NaN stays NaN.
template <class Numbers>
void exponentiate(Numbers&& x) {
    x = x.exp();
    // Eigen's vectorised exp takes nothing below −88.4, so that it makes 4e-39 of exp(−∞). What is
    // no normal number becomes the zero that it should be.
    float* const e = x.data();
    for (std::int64_t i = 0; i < x.size(); ++i)
        e[i] = e[i] < std::numeric_limits<float>::min() ? 0.0f : e[i];
}

// [softmax]
/// Turns a tile of S into P in place and moves the softmax state on: m and l, and O, which shrinks
/// by the same correction as l.
inline void softmax_tile(const AttentionProblem& p, Span kv, Tile& s, QueryTile& q) {
    for (std::int64_t i = 0; i < q.span.rows; ++i) {
        auto row = s.row(i).array();
        row.tail(kv.rows - visible_in(p, kv, q.span.first + i)).setConstant(MINUS_INFINITY);
        const float m_new = larger_maximum(row, q.m[i]);
        // Nothing above −∞ yet: subtract 0, so that exp(−∞ − m) is 0 and not NaN.
        const float shift = m_new == MINUS_INFINITY ? 0.0f : m_new;
        row -= shift;
        const float correction = std::exp(q.m[i] - shift);
        q.l[i] *= correction;
        q.o.row(i) *= correction;
        q.m[i] = m_new;
    }
    exponentiate(s.array());  // the whole tile at once: short rows would starve the vector units
    q.l += s.rowwise().sum().array();
}
// [softmax]

// [values]
/// Adds weights·V to O for one tile. Keys that all queries of a strip see go through the matrix
/// product. A masked key must not, even with weight 0: its V may hold NaN, and 0·NaN is NaN. So
/// the triangle that is left of each strip is added row by row; narrow strips keep it small.
inline void add_weighted_values(const AttentionProblem& p, const Tile& weights, Span kv,
                                const Tile& v, QueryTile& q) {
    constexpr std::int64_t STRIP = 16;
    const bool full = visible_in(p, kv, q.span.first) == kv.rows;
    const std::int64_t strip = full ? q.span.rows : STRIP;
    for (std::int64_t first = 0; first < q.span.rows; first += strip) {
        const std::int64_t rows = std::min(strip, q.span.rows - first);
        const std::int64_t common = visible_in(p, kv, q.span.first + first);
        q.o.middleRows(first, rows).noalias() +=
            weights.block(first, 0, rows, common) * v.topRows(common);
        for (std::int64_t i = first; i < first + rows; ++i)
            for (std::int64_t j = common; j < visible_in(p, kv, q.span.first + i); ++j)
                q.o.row(i) += weights(i, j) * v.row(j);
    }
}
// [values]

/// Room on chip for one query block, one key block and one tile of S. Every load and store goes
/// through here, and the observer, if there is one, is told.
template <class T>
class Tiles {
  public:
    Tiles(const AttentionProblem& p, const AttentionTensors& t, TileSize sizes, Carver& carver,
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

    /// Room for the keys of block `n`; nothing is loaded.
    KeyTile key_tile(std::int64_t n) const {
        const Span span = block_span(p_.len_kv, sizes_.kv, n);
        return {span, Tile(k_, span.rows, p_.head_dim), Tile(v_, span.rows, p_.head_dim)};
    }

    /// Q of the tile's queries, times the scale.
    void load_q(std::int64_t b, std::int64_t h, QueryTile& tile) const {
        load(Operand::q, tile.span.first / sizes_.q, t_.q.as<T>(), b, h, tile.span.first, tile.q);
        tile.q *= p_.effective_scale();
    }

    /// Reads the rows of K that `tile.span` names into the tile.
    void load_k(std::int64_t b, std::int64_t h, KeyTile& tile) const {
        load(Operand::k, tile.span.first / sizes_.kv, t_.k.as<T>(), b, p_.head_kv(h),
             tile.span.first, tile.k);
    }
    /// Reads the rows of V that `tile.span` names into the tile.
    void load_v(std::int64_t b, std::int64_t h, KeyTile& tile) const {
        load(Operand::v, tile.span.first / sizes_.kv, t_.v.as<T>(), b, p_.head_kv(h),
             tile.span.first, tile.v);
    }

    /// Writes O, divided by l.
    void store_o(std::int64_t b, std::int64_t h, const QueryTile& tile) const {
        const auto o = t_.o.as<T>();
        for (std::int64_t i = 0; i < tile.span.rows; ++i) {
            const float l = tile.l[i];
            T* row = o.row(b, h, tile.span.first + i);
            for (std::int64_t c = 0; c < p_.head_dim; ++c)  // no visible key: O = 0
                row[c] = static_cast<T>(l == 0.0f ? 0.0f : tile.o(i, c) / l);
        }
        note_stored(Operand::o, tile.span.first / sizes_.q, tile.span.rows * p_.head_dim,
                    sizeof(T));
    }

    /// Writes LSE = m + log l, if it is wanted.
    void store_lse(std::int64_t b, std::int64_t h, const QueryTile& tile) const {
        if (!t_.lse.data) return;
        for (std::int64_t i = 0; i < tile.span.rows; ++i)
            t_.lse.row(b, h)[tile.span.first + i] =
                tile.l[i] == 0.0f ? MINUS_INFINITY : tile.m[i] + std::log(tile.l[i]);
        note_stored(Operand::lse, tile.span.first / sizes_.q, tile.span.rows, sizeof(float));
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

    /// Tells the observer that `count` elements of `size` bytes were read.
    void note_loaded(Operand operand, std::int64_t block, std::int64_t count,
                     std::size_t size) const {
        if (observer_) observer_->loaded(operand, block, count * static_cast<std::int64_t>(size));
    }
    /// Tells the observer that `count` elements of `size` bytes were written.
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
    const TileSize sizes_;
    ScheduleObserver* const observer_;
    float *q_, *o_, *m_, *l_, *k_, *v_, *s_;
};

/// Throws unless both block sizes are positive and `available` bytes are enough.
/// @throws std::invalid_argument naming `who` and the numbers
void validate(std::string_view who, TileSize sizes, std::size_t available, std::size_t needed);

}  // namespace fa::tiles
