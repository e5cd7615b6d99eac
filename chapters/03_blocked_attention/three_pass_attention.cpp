#include "chapters/03_blocked_attention/three_pass_attention.h"

#include "chapters/03_blocked_attention/tiles.h"

namespace fa {
namespace {

using namespace tiles;
using RowBlock = Eigen::Map<Matrix, Eigen::Unaligned, Eigen::OuterStride<>>;

/// S and P of one head in slow memory, fp32, and room for one row of them on chip.
struct ScoreMatrices {
    float *s, *p;  ///< [len_q, len_kv]
    float* row;    ///< [len_kv]
    std::int64_t len_kv;

    ScoreMatrices(const AttentionProblem& problem, Carver& carver) : len_kv(problem.len_kv) {
        const auto rows = static_cast<std::size_t>(problem.len_q),
                   keys = static_cast<std::size_t>(problem.len_kv);
        s = carver.carve<float>(rows * keys);
        p = carver.carve<float>(rows * keys);
        row = carver.carve<float>(keys);
    }

    RowBlock tile(float* matrix, Span q, Span kv) const {
        return {matrix + q.first * len_kv + kv.first, q.rows, kv.rows,
                Eigen::OuterStride<>(len_kv)};
    }
};

/// Keys of all tiles that the query block does not skip.
std::int64_t visited_keys(const AttentionProblem& p, TileSize sizes, Span q) {
    const std::int64_t seen = p.visible_keys(q.first + q.rows - 1);
    return std::min(block_count(seen, sizes.kv) * sizes.kv, p.len_kv);
}

/// Pass 1: S = scale·Q·Kᵀ, −∞ where masked.
template <class T>
void write_scores(const AttentionProblem& p, const Tiles<T>& tiles, const ScoreMatrices& slow,
                  TileSize sizes, std::int64_t b, std::int64_t h, std::int64_t q_block) {
    QueryTile q = tiles.query_tile(q_block);
    tiles.load_q(b, h, q);
    for (std::int64_t n = 0; n < block_count(p.len_kv, sizes.kv); ++n) {
        if (tiles.kind(q_block, n) == TileKind::skipped) continue;
        KeyTile kv = tiles.key_tile(n);
        tiles.load_k(b, h, kv);
        Tile s = tiles.s(q.span.rows, kv.span.rows);
        s.noalias() = q.q * kv.k.transpose();
        for (std::int64_t i = 0; i < q.span.rows; ++i)
            s.row(i)
                .tail(kv.span.rows - visible_in(p, kv.span, q.span.first + i))
                .setConstant(MINUS_INFINITY);
        slow.tile(slow.s, q.span, kv.span) = s;
        tiles.note_stored(Operand::s, q_block, s.size(), sizeof(float));
    }
}

/// Pass 2: P = softmax(S), row by row; a row must fit on chip.
template <class T>
void write_weights(const AttentionProblem& p, const Tiles<T>& tiles, const ScoreMatrices& slow,
                   TileSize sizes, std::int64_t b, std::int64_t h, std::int64_t q_block) {
    QueryTile q = tiles.query_tile(q_block);
    const std::int64_t keys = visited_keys(p, sizes, q.span);
    Column row(slow.row, keys);
    for (std::int64_t i = 0; i < q.span.rows; ++i) {
        const std::int64_t at = (q.span.first + i) * p.len_kv;
        row = Column(slow.s + at, keys);
        tiles.note_loaded(Operand::s, q_block, keys, sizeof(float));

        q.m[i] = larger_maximum(row, MINUS_INFINITY);
        row -= q.m[i] == MINUS_INFINITY ? 0.0f : q.m[i];
        exponentiate(row);
        q.l[i] = row.sum();
        if (q.l[i] != 0.0f) row /= q.l[i];

        Column(slow.p + at, keys) = row;
        tiles.note_stored(Operand::p, q_block, keys, sizeof(float));
    }
    tiles.store_lse(b, h, q);
}

/// Pass 3: O = P·V.
template <class T>
void write_output(const AttentionProblem& p, const Tiles<T>& tiles, const ScoreMatrices& slow,
                  TileSize sizes, std::int64_t b, std::int64_t h, std::int64_t q_block) {
    QueryTile q = tiles.query_tile(q_block);
    for (std::int64_t n = 0; n < block_count(p.len_kv, sizes.kv); ++n) {
        KeyTile kv = tiles.key_tile(n);
        if (kind_of(p, q.span, kv.span) == TileKind::skipped) continue;
        tiles.load_v(b, h, kv);
        Tile weights = tiles.s(q.span.rows, kv.span.rows);
        weights = slow.tile(slow.p, q.span, kv.span);
        tiles.note_loaded(Operand::p, q_block, weights.size(), sizeof(float));
        q.l += weights.rowwise().sum().array();
        add_weighted_values(p, weights, kv.span, kv.v, q);
    }
    // P is divided already. A row's weights add up to 1, or to 0 if it has none: then O = 0.
    for (float& l : q.l) l = l > 0.0f ? 1.0f : l;
    tiles.store_o(b, h, q);
}

template <class T>
std::size_t workspace_bytes(const AttentionProblem& p, TileSize sizes) {
    Carver counter;
    const AttentionTensors none;
    const Tiles<T> tiles(p, none, sizes, counter, nullptr);
    ScoreMatrices(p, counter);
    return counter.used();
}

template <class T>
void run(const AttentionProblem& p, const AttentionTensors& t, TileSize sizes,
         std::span<std::byte> workspace, ScheduleObserver* observer) {
    Carver carver(workspace);
    const Tiles<T> tiles(p, t, sizes, carver, observer);
    const ScoreMatrices slow(p, carver);
    const std::int64_t blocks = block_count(p.len_q, sizes.q);
    for (std::int64_t b = 0; b < p.batch; ++b)
        for (std::int64_t h = 0; h < p.heads_q; ++h) {
            for (std::int64_t n = 0; n < blocks; ++n) write_scores(p, tiles, slow, sizes, b, h, n);
            for (std::int64_t n = 0; n < blocks; ++n) write_weights(p, tiles, slow, sizes, b, h, n);
            for (std::int64_t n = 0; n < blocks; ++n) write_output(p, tiles, slow, sizes, b, h, n);
        }
}

}  // namespace

std::size_t three_pass_workspace_bytes(const AttentionProblem& problem, TileSize sizes) {
    return with_element_type(problem.dtype, [&](auto element) {
        return workspace_bytes<decltype(element)>(problem, sizes);
    });
}

void three_pass_attention(const AttentionProblem& problem, const AttentionTensors& tensors,
                          TileSize sizes, std::span<std::byte> workspace,
                          ScheduleObserver* observer) {
    validate("three-pass attention", sizes, workspace.size(),
             three_pass_workspace_bytes(problem, sizes));
    with_element_type(problem.dtype, [&](auto element) {
        run<decltype(element)>(problem, tensors, sizes, workspace, observer);
    });
}

}  // namespace fa
