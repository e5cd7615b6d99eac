#include "common/cost_model.h"

#include <doctest/doctest.h>

#include <utility>

#include "chapters/03_blocked_attention/blocked_attention.h"
#include "common/aligned_buffer.h"

namespace fa {
namespace {

AttentionProblem square(std::int64_t length, std::int64_t dim, DType dtype = DType::f32) {
    return {.len_q = length, .len_kv = length, .head_dim = dim, .dtype = dtype};
}

Cost total(const std::array<Cost, 3>& steps) {
    Cost sum;
    for (const Cost& step : steps) sum += step;
    return sum;
}

TEST_CASE("FLOPs follow the usual convention") {
    AttentionProblem p = square(1024, 64);
    CHECK(p.flops() == 268435456);
    CHECK(total(naive_cost(p, p.dtype)).flops == p.flops());
    for (const auto cost : {q_outer_cost, kv_outer_cost})
        CHECK(cost(p, {64, 64}).flops == p.flops());

    p.causal = true;
    CHECK(p.flops() == 134217728);
    // Tiles of one row and one column are the exact count, 2·d·T·(T+1); larger ones do more.
    for (const auto cost : {q_outer_cost, kv_outer_cost}) {
        CHECK(cost(p, {1, 1}).flops == 134348800);
        CHECK(cost(p, {64, 64}).flops == 4.0 * 64 * (64 * 64) * (16 * 17 / 2));
    }
    // The naive way computes the square and masks it.
    CHECK(total(naive_cost(p, p.dtype)).flops == 268435456);
}

TEST_CASE("what is held") {
    const AttentionProblem one = square(4096, 64);
    CHECK(score_bytes(one, DType::f32) == 64.0 * 1024 * 1024);
    CHECK(score_bytes(one, DType::bf16) == 32.0 * 1024 * 1024);
    CHECK(qkvo_bytes(one) == 4.0 * 1024 * 1024);

    AttentionProblem gqa{.batch = 4,
                         .heads_q = 12,
                         .heads_kv = 3,
                         .len_q = 10,
                         .len_kv = 100,
                         .head_dim = 64,
                         .dtype = DType::bf16};
    CHECK(qkvo_bytes(gqa) == 2.0 * 2 * (4 * 12 * 10 * 64 + 4 * 3 * 100 * 64));
    CHECK(score_bytes(gqa, DType::f32) == 4.0 * 4 * 12 * 10 * 100);
    CHECK(kv_cache_bytes(gqa, 12) == 12.0 * 2 * 2 * 4 * 3 * 100 * 64);

    // One S is as large as Q, K, V and O together at T = 4d, and grows in proportion from there.
    for (const std::int64_t length : {256, 512, 16384})
        CHECK(score_bytes(square(length, 64), DType::f32) / qkvo_bytes(square(length, 64)) ==
              static_cast<double>(length) / 256);

    // 12·T² passes 2^31 at T = 13378, and 2^63 bytes far beyond any machine.
    AttentionProblem large = square(13378, 64);
    large.heads_q = large.heads_kv = 12;
    CHECK(score_bytes(large, DType::f32) == 4.0 * (2147483648.0 + 166960));
    CHECK(score_bytes(square(std::int64_t{1} << 40, 64), DType::f32) == 0x1p82);
}

TEST_CASE("largest length is exact") {
    const auto line = [](std::int64_t t) { return 10.0 * static_cast<double>(t); };
    CHECK(largest_length(99.0, line) == 9);
    CHECK(largest_length(100.0, line) == 10);
    CHECK(largest_length(0.0, line) == 0);
    CHECK(largest_length(-1.0, line) == -1);
    CHECK(largest_length(1e300, line) == LONGEST_LENGTH);
    const auto bytes = [](std::int64_t t) {
        return qkvo_bytes(square(t, 64)) + 2 * score_bytes(square(t, 64), DType::f32);
    };
    const std::int64_t length = largest_length(24.0 * (1 << 30), bytes);
    CHECK(bytes(length) <= 24.0 * (1 << 30));
    CHECK(bytes(length + 1) > 24.0 * (1 << 30));
}

TEST_CASE("traffic of the naive way is 4Td + 4T² elements") {
    const Cost cost = total(naive_cost(square(512, 64, DType::bf16), DType::bf16));
    CHECK(cost.bytes == 2.0 * (4 * 512 * 64 + 4 * 512 * 512));
    CHECK(cost.exponentials == 512.0 * 512);
    // The scores may be kept wider than the inputs.
    CHECK(total(naive_cost(square(512, 64, DType::bf16), DType::f32)).bytes ==
          2.0 * 4 * 512 * 64 + 4.0 * 4 * 512 * 512);
}

TEST_CASE("traffic of blocked attention, counted by hand") {
    // 4 queries in 2 blocks, 6 keys in 2 tiles, d = 8, fp32.
    AttentionProblem p{.len_q = 4, .len_kv = 6, .head_dim = 8};
    const TileSize tiles{.q = 2, .kv = 3};
    CHECK(q_outer_cost(p, tiles).bytes ==
          4.0 * (2 * 4 * 8 /* Q, O */ + 2 * 2 * 6 * 8 /* K, V twice */));
    CHECK(kv_outer_cost(p, tiles).bytes ==
          4.0 * (2 * 6 * 8 /* K, V */ + 2 * 4 * 8 /* Q twice */ + 4 * 4 * (8 + 2) /* O, m, l */ +
                 4 * (8 + 2) /* zeroed */ + 4 * (8 + 2) + 4 * 8 /* the last pass */));
    CHECK(q_outer_cost(p, tiles).exponentials == 4.0 * 6 + 4 * 2);

    // Causal: rows see 3, 4, 5, 6 keys; the first block needs both tiles for its second row.
    p.causal = true;
    CHECK(q_outer_cost(p, tiles).exponentials == 3.0 + 4 + 5 + 6 + 4 * 2);
    // With len_q = 7, rows 0 … 6 see 0, 1, … 6 keys, and blocks of 2 rows visit 1, 1, 2, 2 tiles.
    p.len_q = 7;
    CHECK(q_outer_cost(p, tiles).bytes == 4.0 * (2 * 7 * 8 + 2 * (3 + 3 + 6 + 6) * 8));
    const double visits = 2 + 2 + 2 * 2 + 1 * 2;  // rows times tiles
    CHECK(kv_outer_cost(p, tiles).bytes ==
          4.0 * (2 * 6 * 8 + visits * (8 + 2 * 10) + 7 * (10 + 10 + 8)));
}

TEST_CASE("traffic of blocked attention, counted while it runs") {
    struct Counter final : ScheduleObserver {
        std::int64_t bytes = 0;
        void loaded(Operand, std::int64_t, std::int64_t count) override { bytes += count; }
        void stored(Operand, std::int64_t, std::int64_t count) override { bytes += count; }
        void tile(std::int64_t, std::int64_t, TileKind) override {}
    };
    for (const bool causal : {false, true})
        for (const auto& [len_q, len_kv] : {std::pair{97, 97}, {64, 128}, {1, 200}, {200, 33}})
            for (const TileSize tiles : {TileSize{64, 64}, {16, 48}, {33, 7}}) {
                const AttentionProblem p{.batch = 2,
                                         .heads_q = 4,
                                         .heads_kv = 2,
                                         .len_q = len_q,
                                         .len_kv = len_kv,
                                         .head_dim = 24,
                                         .causal = causal};
                CAPTURE(describe(p));
                const Tensor<float> q(p.q_shape()), k(p.kv_shape()), v(p.kv_shape());
                Tensor<float> o(p.q_shape());
                const AttentionTensors t{q.view(), k.view(), v.view(), o.view(), {}};
                for (const LoopOrder order : {LoopOrder::q_outer, LoopOrder::kv_outer}) {
                    const AlignedBuffer workspace(blocked_workspace_bytes(p, order, tiles, 1));
                    Counter counter;
                    blocked_attention(p, t, order, tiles, workspace.bytes(), 1, &counter);
                    const Cost model = order == LoopOrder::q_outer ? q_outer_cost(p, tiles)
                                                                   : kv_outer_cost(p, tiles);
                    CHECK(static_cast<double>(counter.bytes) == model.bytes);
                }
            }
}

TEST_CASE("traffic of blocked attention falls as 1/M") {
    // Theorem 2: doubling the on-chip memory halves the traffic, as long as tiles stay short of T.
    const AttentionProblem p = square(65536, 64);
    const auto bytes = [&](std::int64_t elements) {
        return kv_outer_cost(p, flash_tiles(elements, p.head_dim)).bytes;
    };
    const double ratio = bytes(32 * 1024) / bytes(64 * 1024);
    CHECK(ratio > 1.95);
    CHECK(ratio <= 2.0);
}

TEST_CASE("tiles of FlashAttention's Algorithm 1") {
    const TileSize a100 = flash_tiles(192 * 1024 / 2, 64);  // fp16
    CHECK(a100.kv == 384);
    CHECK(a100.q == 64);
    CHECK(flash_tiles(257, 64).kv == 2);  // rounded up
    CHECK(flash_tiles(1, 64).kv == 1);
    CHECK(flash_tiles(1, 64).q == 1);
}

TEST_CASE("empty problems cost nothing") {
    const AttentionProblem p{.len_q = 0, .len_kv = 0, .head_dim = 64};
    CHECK(total(naive_cost(p, p.dtype)).bytes == 0);
    CHECK(q_outer_cost(p, {64, 64}).bytes == 0);
    CHECK(kv_outer_cost(p, {64, 64}).bytes == 0);
    CHECK(seconds_at(h200_ceilings(), Cost{}) == 0);
}

TEST_CASE("time is that of the slowest part") {
    const Ceilings machine{"test", 100, 1000, 10};
    CHECK(seconds_at(machine, {200, 1000, 10}) == 2);
    CHECK(bound_of(machine, {200, 1000, 10}) == "memory");
    CHECK(bound_of(machine, {200, 5000, 10}) == "products");
    CHECK(bound_of(machine, {200, 5000, 100}) == "exponentials");
}

}  // namespace
}  // namespace fa
