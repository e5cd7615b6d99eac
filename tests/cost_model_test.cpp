#include "common/cost_model.h"

#include <doctest/doctest.h>

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
    for (const LoopOrder order : {LoopOrder::q_outer, LoopOrder::kv_outer})
        CHECK(flash_cost(p, {64, 64}, order).flops == p.flops());

    p.causal = true;
    CHECK(p.flops() == 134217728);
    // Tiles of one row and one column are the exact count, 2·d·T·(T+1); larger ones do more.
    for (const LoopOrder order : {LoopOrder::q_outer, LoopOrder::kv_outer}) {
        CHECK(flash_cost(p, {1, 1}, order).flops == 134348800);
        CHECK(flash_cost(p, {64, 64}, order).flops == 4.0 * 64 * (64 * 64) * (16 * 17 / 2));
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
    CHECK(largest_length(1e300, line) == std::int64_t{1} << 40);
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
    CHECK(flash_cost(p, tiles, LoopOrder::q_outer).bytes ==
          4.0 * (2 * 4 * 8 /* Q, O */ + 2 * 2 * 6 * 8 /* K, V twice */ + 4 /* LSE */));
    CHECK(flash_cost(p, tiles, LoopOrder::kv_outer).bytes ==
          4.0 * (2 * 6 * 8 /* K, V */ + 2 * 4 * 8 /* Q twice */ + 5 * 4 * (8 + 2) /* O, m, l */));
    CHECK(flash_cost(p, tiles, LoopOrder::q_outer).exponentials == 4.0 * 6 + 4 * 2);

    // Causal: rows see 3, 4, 5, 6 keys; the first block needs both tiles for its second row.
    p.causal = true;
    CHECK(flash_cost(p, tiles, LoopOrder::q_outer).exponentials == 3.0 + 4 + 5 + 6 + 4 * 2);
    // With len_q = 7, rows 0 … 6 see 0, 1, … 6 keys, and blocks of 2 rows visit 1, 1, 2, 2 tiles.
    p.len_q = 7;
    CHECK(flash_cost(p, tiles, LoopOrder::q_outer).bytes ==
          4.0 * (2 * 7 * 8 + 2 * (3 + 3 + 6 + 6) * 8 + 7));
    CHECK(flash_cost(p, tiles, LoopOrder::kv_outer).bytes ==
          4.0 * (2 * 6 * 8 + (2 + 2 + 2 * 2 + 1 * 2) * 8 + (7 + 2 * (2 + 2 + 2 * 2 + 1 * 2)) * 10));
}

TEST_CASE("traffic of blocked attention falls as 1/M") {
    // Theorem 2: doubling the on-chip memory halves the traffic, as long as tiles stay short of T.
    const AttentionProblem p = square(65536, 64);
    const auto bytes = [&](double on_chip) {
        const TileSize tiles = flash_tiles(on_chip, p.head_dim, p.dtype);
        return flash_cost(p, tiles, LoopOrder::kv_outer).bytes;
    };
    const double ratio = bytes(128.0 * 1024) / bytes(256.0 * 1024);
    CHECK(ratio > 1.95);
    CHECK(ratio <= 2.0);
}

TEST_CASE("tiles fit the on-chip memory") {
    const TileSize a100 = flash_tiles(192.0 * 1024, 64, DType::f16);
    CHECK(a100.kv == 384);  // 98304 elements / (4·64)
    CHECK(a100.q == 64);
    const TileSize tiny = flash_tiles(1, 64, DType::f32);
    CHECK(tiny.kv == 1);
    CHECK(tiny.q == 1);
}

TEST_CASE("empty problems cost nothing") {
    const AttentionProblem p{.len_q = 0, .len_kv = 0, .head_dim = 64};
    CHECK(total(naive_cost(p, p.dtype)).bytes == 0);
    CHECK(flash_cost(p, {64, 64}, LoopOrder::q_outer).bytes == 0);
    CHECK(flash_cost(p, {64, 64}, LoopOrder::kv_outer).bytes == 0);
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
