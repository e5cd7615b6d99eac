// Chapter 5: what the change of base must not change. Its implementations are
// not on the list yet, so the suite does not see them; here stands what is peculiar to them.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "chapters/03_blocked_attention/fast_attention.h"
#include "chapters/04_cuda_tiled/executor_attention.h"
#include "chapters/05_exp2/bases.h"
#include "chapters/05_exp2/exp2_attention.h"
#include "chapters/05_exp2/fast_exp2_attention.h"
#include "chapters/05_exp2/folded_scale.h"
#include "chapters/05_exp2/unit_model.h"
#include "common/aligned_buffer.h"
#include "common/attention_data.h"
#include "common/larger.h"
#include "common/reference_attention.h"

namespace fa {
namespace {

constexpr float INFINITE = std::numeric_limits<float>::infinity();
constexpr float NOT_A_NUMBER = std::numeric_limits<float>::quiet_NaN();

/// Each of this chapter beside the one it was made from.
struct Pair {
    const Implementation* exp;
    const Implementation* exp2;
};
const std::array PAIRS{Pair{&CPU_FAST, &CPU_FAST_EXP2},
                       Pair{&EXECUTOR_REGISTER_TILED, &EXECUTOR_EXP2}};

template <class T>
void run(const Implementation& implementation, const AttentionProblem& problem,
         AttentionData<T>& data) {
    std::fill(data.o.begin(), data.o.end(), T(NOT_A_NUMBER));
    std::fill(data.lse.begin(), data.lse.end(), NOT_A_NUMBER);
    const AlignedBuffer workspace(implementation.workspace_bytes(problem, {}));
    attention(implementation, problem, data.tensors(), workspace.bytes());
}

/// One head in fp32: d = 1, so that a score is one product.
struct OneHead {
    AttentionProblem problem;
    AttentionData<float> data;

    /// Scores q·k for one query q = 1 and these keys; V_j = j.
    OneHead(const std::vector<float>& scores, float scale)
        : problem{.len_q = 1,
                  .len_kv = static_cast<std::int64_t>(scores.size()),
                  .head_dim = 1,
                  .scale = scale},
          data(problem, 1) {
        *data.q.begin() = 1.0f;
        std::copy(scores.begin(), scores.end(), data.k.begin());
        float j = 0;
        for (float& v : data.v) v = j++;
    }
    float output(const Implementation& implementation) {
        run(implementation, problem, data);
        return *data.o.begin();
    }
    float lse() const { return data.lse[0]; }
};

/// Largest error of O over the largest |O|, and of LSE over max(1, |LSE|). NaN if there is one.
template <class T>
double largest_error(AttentionData<T>& data, const ReferenceResult& gold) {
    double size = 0, worst = 0;
    for (const double o : gold.o) size = std::max(size, std::abs(o));
    const auto raise = [&](double error) { worst = larger_or_nan(worst, error); };
    std::size_t i = 0;
    for (const T& o : data.o) raise(std::abs(double{static_cast<float>(o)} - gold.o[i++]) / size);
    for (i = 0; i < gold.lse.size(); ++i)
        if (double{data.lse[i]} != gold.lse[i])
            raise(std::abs(double{data.lse[i]} - gold.lse[i]) /
                  std::max(1.0, std::abs(gold.lse[i])));
    return worst;
}

TEST_CASE("folded scale: sign, constant and power of two") {
    CHECK(FoldedScale(0.125f).sign == 1);
    CHECK(FoldedScale(0.125f).scale_log2 == 0.125f * LOG2_E);
    CHECK(FoldedScale(-3.0f).sign == -1);
    CHECK(FoldedScale(-3.0f).scale_log2 == 3.0f * LOG2_E);
    // With scale 0 Q becomes 0, and a masked −∞ must stay −∞.
    CHECK(FoldedScale(0.0f).sign == 0);
    CHECK(FoldedScale(-0.0f).sign == 0);
    CHECK(FoldedScale(0.0f).scale_log2 * -INFINITE == -INFINITE);
    // The largest scale that a problem may have.
    CHECK(std::isfinite(FoldedScale(0x1p126f).scale_log2));
    CHECK(FoldedScale(-0x1p126f).scale_log2 == 0x1p126f * LOG2_E);
    for (const float scale : {1e-30f, 0.088f, 1.0f, 1.5f, 3e20f}) {
        const FoldedScale folded(scale);
        int exponent = 0;
        CHECK(std::frexp(folded.power_of_two, &exponent) == 0.5f);
        CHECK(folded.power_of_two <= folded.scale_log2);
        CHECK(folded.scale_log2 < 2 * folded.power_of_two);
    }
}

TEST_CASE("folded scale: huge maxima get the power of two, others the constant") {
    const FoldedScale folded(0.7f);
    const float limit = 0x1p31f / folded.scale_log2;
    for (const float m : {0.0f, 1.0f, -1.0f, 1e4f, -1e4f, limit * 0.999f, -limit * 0.999f})
        CHECK(folded.for_maximum(m) == folded.scale_log2);
    for (const float m : {limit * 1.001f, -limit * 1.001f, 1e30f, -1e30f, INFINITE, -INFINITE})
        CHECK(folded.for_maximum(m) == folded.power_of_two);
    // The point of it: at the maximum itself the exponent is 0, or an exponent that fp32 holds.
    for (float m = 1.7f; m < 1e37f; m *= 3.3f) {
        const float c = folded.for_maximum(m), product = c * m;
        CHECK(std::abs(std::fma(m, c, -product)) <= 64.0f);
    }
}

TEST_CASE("exp2: as chapter 4 and chapter 3 within rounding, and as fp64") {
    for (const Pair& pair : PAIRS)
        for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
            for (const float scale : {0.125f, -0.3f, 0.0f, 3.0f}) {
                const AttentionProblem problem{.heads_q = 2,
                                               .heads_kv = 1,
                                               .len_q = 75,
                                               .len_kv = 141,
                                               .head_dim = 64,
                                               .dtype = dtype,
                                               .scale = scale,
                                               .causal = true};
                with_element_type(dtype, [&](auto element) {
                    CAPTURE(std::string(pair.exp2->name));
                    CAPTURE(describe(problem));
                    CAPTURE(scale);
                    AttentionData<decltype(element)> data(problem, 3);
                    const ReferenceResult gold = reference_attention(problem, data.tensors());
                    run(*pair.exp, problem, data);
                    const double exp = largest_error(data, gold);
                    run(*pair.exp2, problem, data);
                    const double exp2 = largest_error(data, gold);
                    CHECK(exp2 <= 2 * exp + 0x1p-21);
                });
            }
}

TEST_CASE("exp2: LSE is the natural logarithm") {
    for (const Pair& pair : PAIRS)
        for (const float scale : {0.125f, -2.0f, 0.0f}) {
            CAPTURE(std::string(pair.exp2->name));
            CAPTURE(scale);
            OneHead equal(std::vector<float>(37, 4.0f), scale);
            equal.output(*pair.exp2);
            CHECK(equal.lse() == doctest::Approx(4.0 * scale + std::log(37.0)).epsilon(3e-7));
            OneHead single({-5.0f}, scale);
            CHECK(single.output(*pair.exp2) == 0.0f);
            CHECK(single.lse() == doctest::Approx(-5.0 * scale).epsilon(3e-7));
        }
}

TEST_CASE("exp2: a negative scale turns the order of the scores round") {
    for (const Pair& pair : PAIRS) {
        CAPTURE(std::string(pair.exp2->name));
        // The largest q·k has the smallest weight. Scores far apart: the winner takes it all.
        OneHead row({300, -250, 100, 0}, -1.0f);
        CHECK(row.output(*pair.exp2) == 1.0f);
        CHECK(row.lse() == doctest::Approx(250.0));
        // More than a tile of the smallest first, so that the maximum rises later.
        std::vector<float> falling(200);
        for (std::size_t j = 0; j < falling.size(); ++j)
            falling[j] = -50.0f * static_cast<float>(j);
        OneHead late(falling, -1.0f);
        CHECK(late.output(*pair.exp2) == 199.0f);
    }
}

TEST_CASE("exp2: scale 0 weighs all visible keys the same, masked ones not at all") {
    for (const Pair& pair : PAIRS) {
        CAPTURE(std::string(pair.exp2->name));
        const AttentionProblem problem{
            .len_q = 130, .len_kv = 130, .head_dim = 8, .scale = 0.0f, .causal = true};
        AttentionData<float> data(problem, 5);
        std::int64_t j = 0;
        for (float& v : data.v) v = static_cast<float>(j++ / 8);
        run(*pair.exp2, problem, data);
        j = 0;
        for (const float o : data.o)
            CHECK(o == doctest::Approx(0.5 * static_cast<double>(j++ / 8)));
        for (std::size_t i = 0; i < data.lse.size(); ++i)
            CHECK(data.lse[i] == doctest::Approx(std::log(static_cast<double>(i + 1))));
    }
}

TEST_CASE("exp2: scores of -inf weigh nothing, also the first and all of them") {
    for (const Pair& pair : PAIRS)
        for (const float scale : {1.0f, -1.0f, 1e-3f}) {
            CAPTURE(std::string(pair.exp2->name));
            CAPTURE(scale);
            const float none = scale > 0 ? -INFINITE : INFINITE;  // scale·none = −∞
            OneHead row({none, none, 2, none, 2}, scale);
            CHECK(row.output(*pair.exp2) == doctest::Approx(3.0));
            CHECK(row.lse() == doctest::Approx(2.0 * scale + std::log(2.0)));
            std::vector<float> leading(300, none);  // whole tiles of them
            leading.push_back(7);
            OneHead late(leading, scale);
            CHECK(late.output(*pair.exp2) == 300.0f);
            OneHead empty(std::vector<float>(3, none), scale);
            CHECK(empty.output(*pair.exp2) == 0.0f);
            CHECK(empty.lse() == -INFINITE);
        }
}

TEST_CASE("exp2: NaN and +inf make the row NaN, wherever they stand") {
    for (const Pair& pair : PAIRS)
        for (const float bad : {NOT_A_NUMBER, INFINITE})
            for (const std::size_t where : {0u, 5u, 70u, 149u}) {
                CAPTURE(std::string(pair.exp2->name));
                CAPTURE(where);
                std::vector<float> scores(150, 0.5f);
                scores[where] = bad;
                OneHead row(scores, 1.0f);
                CHECK(std::isnan(row.output(*pair.exp2)));
                CHECK(std::isnan(row.lse()));
            }
}

TEST_CASE("exp2: the maximum stays for many tiles, and nothing drifts") {
    // c·m is not a float; a correction of 2^(c·m − round(c·m)) per tile would add up.
    for (const Pair& pair : PAIRS)
        for (const float score : {5000.3f, -5000.3f, 0.7f}) {
            CAPTURE(std::string(pair.exp2->name));
            CAPTURE(score);
            OneHead row(std::vector<float>(3001, score), 1.0f);
            CHECK(row.output(*pair.exp2) == doctest::Approx(1500.0).epsilon(2e-5));
            CHECK(row.lse() ==
                  doctest::Approx(double{score} + std::log(3001.0)).epsilon(2e-7 + 1e-5 / 5000));
        }
}

TEST_CASE("exp2: huge scores have weights 1 and 0") {
    for (const Pair& pair : PAIRS)
        for (const float size : {1e6f, 1e8f, 1e9f, 3e9f, 1e10f, 1e12f, 1e20f, 1e30f})
            for (const float sign : {1.0f, -1.0f}) {
                CAPTURE(std::string(pair.exp2->name));
                CAPTURE(sign * size);
                // Equal maxima in different tiles share the weight.
                std::vector<float> scores(200, sign * size);
                for (const std::size_t j : {40u, 120u})
                    scores[j] = std::nextafter(sign * size, INFINITE);
                if (std::abs(scores[40] - scores[0]) < 30) continue;  // weights that do show
                OneHead row(scores, 1.0f);
                CHECK(row.output(*pair.exp2) == doctest::Approx(80.0));
                CHECK(row.lse() == doctest::Approx(double{scores[40]}).epsilon(3e-7));
            }
}

TEST_CASE("exp2: a maximum that passes the limit between tiles") {
    for (const Pair& pair : PAIRS) {
        CAPTURE(std::string(pair.exp2->name));
        std::vector<float> rising, falling;
        for (int j = 0; j < 400; ++j) rising.push_back(std::ldexp(1.3f, j / 8));  // to 2^49
        falling = rising;
        for (float& s : falling) s = -s;
        OneHead up(rising, 1.0f);  // the last eight are the largest: 392 … 399
        CHECK(up.output(*pair.exp2) == doctest::Approx(395.5));
        OneHead down(falling, 1.0f);  // 0 … 7: −1.3; then −2.6, …
        const ReferenceResult gold = reference_attention(down.problem, down.data.tensors());
        CHECK(down.output(*pair.exp2) == doctest::Approx(gold.o[0]).epsilon(1e-5));
        std::reverse(falling.begin(), falling.end());  // from −2^49 up to −1.3
        OneHead late(falling, 1.0f);
        const ReferenceResult gold_late = reference_attention(late.problem, late.data.tensors());
        CHECK(late.output(*pair.exp2) == doctest::Approx(gold_late.o[0]).epsilon(1e-5));
    }
}

TEST_CASE("exp2: rows of both bases agree, and each mistake shows") {
    const std::vector<float> scores{3, -1, 4, 1, -5, 9, 2, 6};
    for (const float scale : {1.0f, -0.4f, 0.0f}) {
        const RowSoftmax e = softmax_base_e(scores, scale), two = softmax_base_2(scores, scale);
        for (std::size_t j = 0; j < scores.size(); ++j)
            CHECK(two.probability(j) == doctest::Approx(e.probability(j)).epsilon(1e-6));
        CHECK(two.lse == doctest::Approx(e.lse).epsilon(1e-6));
        CHECK(two.lse_base2 == doctest::Approx(e.lse / std::log(2.0)).epsilon(1e-6));
        const OnlineRow want = online_reference(scores, scale);
        for (const std::size_t block : {1u, 2u, 3u, 8u}) {
            const OnlineRow got = online_base_2(scores, scale, block, Fault::none);
            CHECK(got.first == doctest::Approx(want.first).epsilon(1e-5));
            CHECK(got.last == doctest::Approx(want.last).epsilon(1e-5));
            CHECK(got.lse == doctest::Approx(want.lse).epsilon(1e-6));
        }
    }
}

TEST_CASE("unit model: every exponential and multiply-add of a tile is there") {
    for (const std::int64_t head_dim : {64, 128, 256}) {
        const TileShape s = tile_shape(head_dim);
        CHECK(s.head_dim == head_dim);
        CHECK(s.rows * s.keys * s.threads == s.block_m * s.block_n);
        CHECK(s.rows * s.channels * s.threads == s.block_m * s.head_dim);
        const TileInstructions exp = tile_instructions(s, Exponential::exp);
        const TileInstructions exp2 = tile_instructions(s, Exponential::exp2);
        // A weight for each score and a correction for each row and thread.
        CHECK(exp.exponentials * s.threads == s.block_m * s.block_n + s.block_m * s.threads_x);
        CHECK(exp2.exponentials == exp.exponentials);
        CHECK(exp2.shared == exp.shared);
        CHECK(exp2.shuffles == exp.shuffles);
        // Both products, and less than a twentieth of them more.
        const double products = 2.0 * s.block_m * s.block_n * s.head_dim;
        CHECK(exp.multiply_adds * s.threads > products);
        CHECK(exp2.multiply_adds < exp.multiply_adds);
        CHECK(exp.multiply_adds * s.threads < 1.06 * products);
    }
}

}  // namespace
}  // namespace fa
