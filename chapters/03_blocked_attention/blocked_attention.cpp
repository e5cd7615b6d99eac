#include "chapters/03_blocked_attention/blocked_attention.h"

#include <fmt/format.h>
#include <omp.h>

#include "chapters/03_blocked_attention/tiles.h"

namespace fa {

void tiles::validate(std::string_view who, TileSize sizes, std::size_t available,
                     std::size_t needed) {
    if (sizes.q < 1 || sizes.kv < 1)
        throw std::invalid_argument(
            fmt::format("{}: tiles of {}x{}, must be at least 1x1", who, sizes.q, sizes.kv));
    if (available < needed)
        throw std::invalid_argument(
            fmt::format("{}: workspace has {} bytes, {} needed", who, available, needed));
}

namespace {

using namespace tiles;

// [tile]
/// One tile of S, from product to weighted sum: the inner loop of both orders.
/// `s` is room for [queries, keys].
void attend_tile(const AttentionProblem& p, const KeyTile& kv, Tile s, QueryTile& q) {
    s.noalias() = q.q * kv.k.transpose();         // S_ij = Q_i·K_jᵀ
    softmax_tile(p, kv.span, s, q);               // P_ij, and O, l and m corrected
    add_weighted_values(p, s, kv.span, kv.v, q);  // O_i += P_ij·V_j
}
// [tile]

// [q-outer]
/// FlashAttention-2: one block of queries meets all keys that it sees. O never leaves the chip
/// before it is finished, and query blocks do not talk to each other: any number may run at once.
template <class T>
void q_outer(const AttentionProblem& p, const Tiles<T>& tiles, TileSize sizes, std::int64_t b,
             std::int64_t h, std::int64_t q_block) {
    QueryTile q = tiles.query_tile(q_block);
    tiles.load_q(b, h, q);
    for (std::int64_t n = 0; n < block_count(p.len_kv, sizes.kv); ++n) {
        if (tiles.kind(q_block, n) == TileKind::skipped) continue;  // K and V are not even loaded
        KeyTile kv = tiles.key_tile(n);
        tiles.load_k(b, h, kv);
        tiles.load_v(b, h, kv);
        attend_tile(p, kv, tiles.s(q.span.rows, kv.span.rows), q);
    }
    tiles.store_o(b, h, q);
    tiles.store_lse(b, h, q);
}
// [q-outer]

/// O, m and l of all queries of one head in slow memory, fp32, for the order that rewrites them.
template <class T>
class RunningHead {
  public:
    RunningHead(const AttentionProblem& p, const Tiles<T>& tiles, Carver& carver)
        : tiles_(tiles), dim_(p.head_dim) {
        const auto rows = static_cast<std::size_t>(p.len_q);
        o_ = carver.carve<float>(rows * static_cast<std::size_t>(p.head_dim));
        m_ = carver.carve<float>(rows);
        l_ = carver.carve<float>(rows);
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
    const std::int64_t dim_;
    float *o_, *m_, *l_;  // [len_q, d], [len_q], [len_q]
};

// [kv-outer]
/// FlashAttention: one block of keys meets all queries that see it. K and V are read once, but O, m
/// and l of every query block come in and go out again for every block of keys. (The paper's O is
/// divided by l at every turn; ours once, in a last pass.)
template <class T>
void kv_outer(const AttentionProblem& p, const Tiles<T>& tiles, const RunningHead<T>& running,
              TileSize sizes, std::int64_t b, std::int64_t h) {
    const std::int64_t q_blocks = block_count(p.len_q, sizes.q);
    for (std::int64_t i = 0; i < q_blocks; ++i)
        running.store(i, tiles.query_tile(i));  // O = 0, l = 0, m = −∞
    for (std::int64_t n = 0; n < block_count(p.len_kv, sizes.kv); ++n) {
        KeyTile kv = tiles.key_tile(n);
        tiles.load_k(b, h, kv);
        tiles.load_v(b, h, kv);
        for (std::int64_t i = 0; i < q_blocks; ++i) {
            if (tiles.kind(i, n) == TileKind::skipped) continue;
            QueryTile q = tiles.query_tile(i);
            tiles.load_q(b, h, q);
            running.load(i, q);
            attend_tile(p, kv, tiles.s(q.span.rows, kv.span.rows), q);
            running.store(i, q);
        }
    }
    for (std::int64_t i = 0; i < q_blocks; ++i) {
        QueryTile q = tiles.query_tile(i);
        running.load(i, q);
        tiles.store_o(b, h, q);
        tiles.store_lse(b, h, q);
    }
}
// [kv-outer]

/// A thread's share of the workspace, in bytes: the same carving, only counted.
template <class T>
std::size_t bytes_per_thread(const AttentionProblem& p, LoopOrder order, TileSize sizes) {
    Carver counter;
    const AttentionTensors none;
    const Tiles<T> tiles(p, none, sizes, counter, nullptr);
    if (order == LoopOrder::kv_outer) RunningHead<T>(p, tiles, counter);
    return counter.used();
}

template <class T>
void run(const AttentionProblem& p, const AttentionTensors& t, LoopOrder order, TileSize sizes,
         std::span<std::byte> workspace, int threads, ScheduleObserver* observer) {
    const std::size_t share = bytes_per_thread<T>(p, order, sizes);

#pragma omp parallel num_threads(threads)
    {
        Carver carver(
            workspace.subspan(share * static_cast<std::size_t>(omp_get_thread_num()), share));
        const Tiles<T> tiles(p, t, sizes, carver, observer);
        if (order == LoopOrder::q_outer) {
            const std::int64_t blocks = block_count(p.len_q, sizes.q);
#pragma omp for collapse(3) schedule(dynamic)
            for (std::int64_t b = 0; b < p.batch; ++b)
                for (std::int64_t h = 0; h < p.heads_q; ++h)
                    for (std::int64_t n = 0; n < blocks; ++n) q_outer(p, tiles, sizes, b, h, n);
        } else {
            // K/V blocks of one head follow one another through the same O: only heads run at once.
            const RunningHead<T> running(p, tiles, carver);
#pragma omp for collapse(2) schedule(dynamic)
            for (std::int64_t b = 0; b < p.batch; ++b)
                for (std::int64_t h = 0; h < p.heads_q; ++h)
                    kv_outer(p, tiles, running, sizes, b, h);
        }
    }
}

template <LoopOrder ORDER>
std::size_t default_workspace_bytes(const AttentionProblem& p, const Launch& launch) {
    return blocked_workspace_bytes(p, ORDER, TileSize{}, launch.thread_count());
}

template <LoopOrder ORDER>
void run_default(const AttentionProblem& p, const AttentionTensors& t,
                 std::span<std::byte> workspace, const Launch& launch) {
    blocked_attention(p, t, ORDER, TileSize{}, workspace, launch.thread_count());
}

std::string supports_all(const AttentionProblem&) {
    return {};
}

}  // namespace

std::size_t blocked_workspace_bytes(const AttentionProblem& problem, LoopOrder order,
                                    TileSize sizes, int threads) {
    return static_cast<std::size_t>(threads) * with_element_type(problem.dtype, [&](auto element) {
               return bytes_per_thread<decltype(element)>(problem, order, sizes);
           });
}

void blocked_attention(const AttentionProblem& problem, const AttentionTensors& tensors,
                       LoopOrder order, TileSize sizes, std::span<std::byte> workspace, int threads,
                       ScheduleObserver* observer) {
    validate("blocked attention", sizes, workspace.size(),
             blocked_workspace_bytes(problem, order, sizes, threads));
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
