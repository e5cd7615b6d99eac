#include "chapters/01_memory_accounting/naive_attention.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "common/aligned_buffer.h"
#include "common/attention_data.h"
#include "common/reference_attention.h"

namespace fa {
namespace {

constexpr float NOT_A_NUMBER = std::numeric_limits<float>::quiet_NaN();
constexpr float INFINITE = std::numeric_limits<float>::infinity();

/// Inputs and results of one run.
template <class T>
struct Case : AttentionData<T> {
    using AttentionData<T>::o, AttentionData<T>::lse, AttentionData<T>::tensors;
    AttentionProblem problem;

    explicit Case(AttentionProblem p) : AttentionData<T>(p, 1), problem(p) {
        problem.dtype = dtype_of<T>();
    }

    /// Runs with workspace and outputs full of NaN.
    void run(const Implementation& implementation, int threads = 2) {
        const Launch launch{.threads = threads};
        const AlignedBuffer workspace(implementation.workspace_bytes(problem, launch));
        std::ranges::fill(workspace.bytes(), std::byte{0xff});
        std::ranges::fill(o, static_cast<T>(NOT_A_NUMBER));
        std::ranges::fill(lse, NOT_A_NUMBER);
        attention(implementation, problem, tensors(), workspace.bytes(), launch);
    }

    float out(std::int64_t row, std::int64_t channel) {
        return static_cast<float>(o(0, 0, row, channel));
    }
};

AttentionProblem one_head(std::int64_t len_q, std::int64_t len_kv, std::int64_t dim, bool causal) {
    return {.len_q = len_q, .len_kv = len_kv, .head_dim = dim, .causal = causal};
}

TEST_CASE("the workspace is S and P of all heads") {
    const Launch launch{.threads = 3};
    const AttentionProblem p = one_head(4096, 4096, 64, false);
    CHECK(CPU_NAIVE.workspace_bytes(p, launch) == std::size_t{128} << 20);

    AttentionProblem half = p;
    half.dtype = DType::bf16;
    half.batch = half.heads_q = half.heads_kv = 2;
    const std::size_t matrices = 2 * 4 * std::size_t{4096} * 4096;  // elements
    const std::size_t tiles = (2 * 128 * 64 + 4096 * 64) * sizeof(float);
    CHECK(CPU_NAIVE.workspace_bytes(half, launch) == matrices * 4 + 3 * tiles);
    CHECK(CPU_NAIVE_BF16_SCORES.workspace_bytes(half, launch) ==
          matrices * 2 + 3 * (tiles + 128 * 4096 * sizeof(float)));
}

TEST_CASE("what cannot be addressed is refused") {
    const AttentionProblem p = one_head(std::int64_t{1} << 30, std::int64_t{1} << 30, 1, false);
    CHECK(CPU_NAIVE.why_unsupported(p).find("1073741824") != std::string::npos);
    CHECK(CPU_NAIVE.why_unsupported(one_head(1 << 20, 1 << 20, 1, false)).empty());
}

TEST_CASE("rows of a block that see different keys: a masked NaN touches none of them") {
    // 300 rows are three blocks of up to 128; the causal diagonal runs through each.
    for (const auto& lengths : {std::pair{300, 300}, {300, 200}, {130, 300}, {5, 2}}) {
        const std::int64_t len_q = lengths.first, len_kv = lengths.second;
        CAPTURE(len_q);
        CAPTURE(len_kv);
        Case<float> clean(one_head(len_q, len_kv, 16, true));
        clean.run(CPU_NAIVE);
        for (const std::int64_t key : {std::int64_t{1}, len_kv / 2, len_kv - 1})
            for (const bool in_v : {false, true})
                for (const float poison : {NOT_A_NUMBER, INFINITE}) {
                    Case<float> dirty(clean.problem);
                    Tensor<float>& target = in_v ? dirty.v : dirty.k;
                    for (std::int64_t c = 0; c < 16; ++c) target(0, 0, key, c) = poison;
                    dirty.run(CPU_NAIVE);
                    for (std::int64_t i = 0; i < len_q; ++i) {
                        const bool sees = clean.problem.visible_keys(i) > key;
                        bool equal = true, finite = true;
                        for (std::int64_t c = 0; c < 16; ++c) {
                            equal = equal && dirty.out(i, c) == clean.out(i, c);
                            finite = finite && std::isfinite(dirty.out(i, c));
                        }
                        if (!sees) CHECK(equal);
                        if (sees && std::isnan(poison)) CHECK_FALSE(finite);
                    }
                }
    }
}

TEST_CASE("a NaN score makes its row NaN, wherever it stands, and no other row") {
    for (const std::int64_t key : {0, 5, 16}) {
        Case<float> run(one_head(3, 17, 8, false));
        run.k(0, 0, key, 3) = NOT_A_NUMBER;
        for (std::int64_t c = 0; c < 8; ++c) run.q(0, 0, 1, c) = 0;  // 0·NaN is NaN, too
        run.run(CPU_NAIVE);
        for (std::int64_t i = 0; i < 3; ++i) {
            CHECK(std::isnan(run.out(i, 0)));
            CHECK(std::isnan(run.lse[static_cast<std::size_t>(i)]));
        }
        Case<float> row(one_head(3, 17, 8, false));
        row.q(0, 0, 1, 2) = NOT_A_NUMBER;
        row.run(CPU_NAIVE);
        CHECK(std::isfinite(row.out(0, 0)));
        CHECK(std::isnan(row.out(1, 0)));
        CHECK(std::isfinite(row.out(2, 0)));
    }
}

TEST_CASE("scores of minus infinity weigh exactly nothing") {
    // q·k = −∞ for the first keys; their V is huge, so that any weight at all would show.
    Case<float> run(one_head(1, 20, 4, false));
    std::ranges::fill(run.q, 1.0f);
    for (std::int64_t j = 0; j < 17; ++j) {
        run.k(0, 0, j, 0) = -INFINITE;
        for (std::int64_t c = 0; c < 4; ++c) run.v(0, 0, j, c) = 3e38f;
    }
    run.run(CPU_NAIVE);
    const ReferenceResult want = reference_attention(run.problem, run.tensors());
    for (std::int64_t c = 0; c < 4; ++c)
        CHECK(run.out(0, c) == doctest::Approx(want.o[static_cast<std::size_t>(c)]).epsilon(1e-5));

    // All scores −∞: no weight to share out, whatever V holds.
    for (std::int64_t j = 0; j < 20; ++j) run.k(0, 0, j, 0) = -INFINITE;
    run.v(0, 0, 3, 2) = NOT_A_NUMBER;
    run.run(CPU_NAIVE);
    for (std::int64_t c = 0; c < 4; ++c) CHECK(run.out(0, c) == 0.0f);
    CHECK(run.lse[0] == -INFINITE);
}

TEST_CASE("results do not depend on the number of threads") {
    for (const bool causal : {false, true})
        for (const Implementation* implementation : {&CPU_NAIVE, &CPU_NAIVE_BF16_SCORES}) {
            Case<BFloat16> one(one_head(700, 650, 40, causal)), many(one.problem);
            one.run(*implementation, 1);
            for (const int threads : {2, 3, 7}) {
                many.run(*implementation, threads);
                CHECK(std::memcmp(one.o.data(), many.o.data(), one.o.bytes()) == 0);
                CHECK(one.lse == many.lse);
            }
        }
}

TEST_CASE("scores in bf16 are rounded after the product, after scaling, and after the softmax") {
    // q·k = 1386 and 1388, halved 693 and 694. bf16 keeps 8 bits: 1386 becomes 1384, the tie 1388
    // stays at the even 1392; half of them are 692 and 696, 4 apart instead of 1.
    Case<BFloat16> run(one_head(1, 2, 2, false));
    run.problem.scale = 0.5f;
    const float q[] = {2, 1}, k[] = {688, 10, 688, 12};
    const float v[] = {0, 1, 1, 0};
    for (int c = 0; c < 2; ++c) run.q.data()[c] = BFloat16(q[c]);
    for (int c = 0; c < 4; ++c) run.k.data()[c] = BFloat16(k[c]);
    for (int c = 0; c < 4; ++c) run.v.data()[c] = BFloat16(v[c]);

    run.run(CPU_NAIVE);
    const double exact = 1 / (1 + std::exp(-1.0));
    CHECK(run.out(0, 0) == static_cast<float>(BFloat16(static_cast<float>(exact))));
    run.run(CPU_NAIVE_BF16_SCORES);
    const double coarse = 1 / (1 + std::exp(-4.0));
    CHECK(run.out(0, 0) == static_cast<float>(BFloat16(static_cast<float>(coarse))));
    CHECK(run.out(0, 1) == static_cast<float>(BFloat16(static_cast<float>(1 - coarse))));
    CHECK(run.lse[0] == doctest::Approx(696 + std::log1p(std::exp(-4.0))));
}

}  // namespace
}  // namespace fa
