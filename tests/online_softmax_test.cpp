#include "chapters/02_online_softmax/online_softmax.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "chapters/02_online_softmax/orders.h"
#include "chapters/02_online_softmax/pitfalls.h"
#include "chapters/02_online_softmax/trace.h"
#include "common/random.h"

namespace fa {
namespace {

constexpr float INFINITE = std::numeric_limits<float>::infinity();
constexpr float NOT_A_NUMBER = std::numeric_limits<float>::quiet_NaN();
constexpr double HALF_ULP = 0x1p-24;

struct Inputs {
    std::vector<float> scores, values;
    std::size_t head_dim;
};

Inputs random_inputs(Random& random, std::size_t count, std::size_t head_dim, float spread) {
    Inputs in{std::vector<float>(count), std::vector<float>(count * head_dim), head_dim};
    random.fill_normal(in.scores, spread);
    random.fill_normal(in.values);
    return in;
}

/// One state for each `block` scores.
std::vector<AttentionState> blocks_of(const Inputs& in, std::size_t block) {
    return states_of_blocks(in.scores, block, in.values, in.head_dim);
}

/// One pass, `block` scores at a time.
AttentionState one_pass(const Inputs& in, std::size_t block) {
    const auto trace = trace_online_softmax(in.scores, block, in.values, in.head_dim);
    return trace.empty() ? AttentionState(in.head_dim) : trace.back().after;
}

/// m exact; l and O within the rounding of `depth` steps, in which all terms are of one sign for l,
/// and bounded by the largest |v| for O.
void check_equal(const AttentionState& state, const Inputs& in, std::size_t depth) {
    const TwoPassResult want = two_passes(in.scores, in.values, in.head_dim);
    CHECK(double{state.softmax.max} == want.max);
    const double bound = (3.0 * static_cast<double>(depth) + 3) * HALF_ULP;
    CHECK(std::abs(double{state.softmax.sum} - want.sum) <= bound * want.sum);
    float largest = 0;
    for (const float v : in.values) largest = std::max(largest, std::abs(v));
    const std::vector<float> output = state.output();
    for (std::size_t c = 0; c < in.head_dim; ++c)
        CHECK(std::abs(double{output[c]} - want.output[c]) <= 2 * bound * double{largest});
}

TEST_CASE("eight scores, two at a time, by hand") {
    const std::vector<float> scores{1, 3, 2, 5, 4, 0, 6, -1};
    const auto trace = trace_online_softmax(scores, 2, {}, 0);
    REQUIRE(trace.size() == 4);
    const float maxima[] = {3, 5, 5, 6};
    const double corrections[] = {0, std::exp(-2.0), 1, std::exp(-1.0)};
    const double sums[] = {
        1 + std::exp(-2.0), std::exp(-4.0) + std::exp(-2.0) + std::exp(-3.0) + 1,
        std::exp(-4.0) + std::exp(-2.0) + std::exp(-3.0) + 1 + std::exp(-1.0) + std::exp(-5.0),
        std::exp(-5.0) + std::exp(-3.0) + std::exp(-4.0) + std::exp(-1.0) + std::exp(-2.0) +
            std::exp(-6.0) + 1 + std::exp(-7.0)};
    for (std::size_t b = 0; b < 4; ++b) {
        CHECK(trace[b].after.softmax.max == maxima[b]);
        CHECK(trace[b].correction == doctest::Approx(corrections[b]).epsilon(1e-7));
        CHECK(trace[b].after.softmax.sum == doctest::Approx(sums[b]).epsilon(4e-7));
    }
}

TEST_CASE("any block size gives the two-pass result") {
    Random random(1);
    for (const std::size_t count : {1u, 2u, 31u, 64u, 65u, 257u, 1000u})
        for (const std::size_t block : {1u, 2u, 7u, 64u, 1000u})
            for (const float spread : {0.0f, 1.0f, 30.0f}) {
                const Inputs in = random_inputs(random, count, 3, spread);
                check_equal(one_pass(in, block), in, count);
            }
}

TEST_CASE("rising and falling scores") {
    Random random(2);
    Inputs in = random_inputs(random, 512, 2, 40.0f);
    std::ranges::sort(in.scores);  // the maximum moves in every block
    check_equal(one_pass(in, 8), in, 512);
    std::ranges::reverse(in.scores);  // it never moves again
    check_equal(one_pass(in, 8), in, 512);
    for (const TraceStep& step : trace_online_softmax(in.scores, 8, in.values, 2)) {
        if (step.before.softmax.sum > 0) CHECK(step.correction == 1.0f);
    }
}

TEST_CASE("merging is associative and commutative, up to rounding") {
    Random random(3);
    for (int round = 0; round < 200; ++round) {
        const Inputs in = random_inputs(random, 1 + random.below(100), 4, 20.0f);
        const std::size_t block = 1 + random.below(9);
        const std::vector<AttentionState> states = blocks_of(in, block);
        const std::size_t depth = block + states.size();

        check_equal(merge_one_by_one(states), in, depth);
        check_equal(merge_backwards(states), in, depth);
        check_equal(merge_tree(states), in, depth);
        const MergedState pairs = merge_random_pairs(states, random);
        check_equal(pairs.state, in, depth);
        // Between a tree and a chain.
        CHECK(pairs.depth + 1 <= states.size());
        CHECK((std::size_t{1} << std::min<std::size_t>(pairs.depth, 20)) >= states.size());
    }
}

TEST_CASE("a new state is the neutral element") {
    Random random(4);
    const Inputs in = random_inputs(random, 10, 2, 5.0f);
    const AttentionState state = blocks_of(in, 10).front(), none(2);
    for (const AttentionState& merged : {merge(state, none), merge(none, state)}) {
        CHECK(merged.softmax.max == state.softmax.max);
        CHECK(merged.softmax.sum == state.softmax.sum);
        CHECK(merged.acc == state.acc);
    }
    const AttentionState nothing = merge(none, none);
    CHECK(nothing.softmax.max == -INFINITE);
    CHECK(nothing.softmax.sum == 0.0f);
    CHECK(nothing.softmax.lse() == -INFINITE);
}

TEST_CASE("blocks of minus infinity, anywhere") {
    Random random(5);
    for (const std::size_t first : {0u, 4u, 8u, 12u}) {
        Inputs in = random_inputs(random, 16, 2, 3.0f);
        std::fill_n(in.scores.begin() + static_cast<std::ptrdiff_t>(first), 4, -INFINITE);
        for (const std::size_t block : {1u, 2u, 4u, 8u, 16u}) {
            check_equal(one_pass(in, block), in, 16);
            check_equal(merge_tree(blocks_of(in, block)), in, 16);
            check_equal(merge_random_pairs(blocks_of(in, block), random).state, in, 16);
        }
    }
}

TEST_CASE("nothing but minus infinity gives O = 0 and LSE = minus infinity") {
    Inputs in{std::vector<float>(8, -INFINITE), std::vector<float>(16, 5.0f), 2};
    in.values[3] = NOT_A_NUMBER;  // 0·NaN is NaN in acc, but there is no weight to share out
    for (const std::size_t block : {1u, 3u, 8u})
        for (const AttentionState& state :
             {one_pass(in, block), merge_tree(blocks_of(in, block))}) {
            CHECK(state.softmax.lse() == -INFINITE);
            CHECK(state.output() == std::vector<float>{0.0f, 0.0f});
        }
}

TEST_CASE("NaN stays, wherever it comes") {
    Random random(6);
    for (const std::size_t at : {0u, 5u, 16u})
        for (const std::size_t block : {1u, 4u, 17u}) {
            Inputs in = random_inputs(random, 17, 2, 3.0f);
            in.scores[at] = NOT_A_NUMBER;
            for (const AttentionState& state :
                 {one_pass(in, block), merge_tree(blocks_of(in, block)),
                  merge_random_pairs(blocks_of(in, block), random).state}) {
                CHECK(std::isnan(state.softmax.lse()));
                for (const float o : state.output()) CHECK(std::isnan(o));
            }
        }
    // Plus infinity minus itself is NaN too, by the definition as well as here.
    Inputs infinite{{1, INFINITE, 2, 3}, {1, 2, 3, 4}, 1};
    CHECK(std::isnan(one_pass(infinite, 2).output()[0]));
    CHECK(std::isnan(two_passes(infinite.scores, infinite.values, 1).output[0]));
}

TEST_CASE("extreme scores neither overflow nor vanish") {
    for (const float offset : {-20000.0f, -400.0f, 400.0f, 3e37f}) {
        Inputs in{{offset, offset, offset, offset}, {1, 2, 3, 6}, 1};
        for (const std::size_t block : {1u, 2u, 4u}) {
            const AttentionState state = one_pass(in, block);
            CHECK(state.softmax.max == offset);
            CHECK(state.softmax.sum == 4.0f);
            CHECK(state.output()[0] == 3.0f);
        }
    }
    // One score −20000 is the maximum of its row: no stand-in for −∞ such as −10000 may be above
    // it.
    const Inputs low{{-20000.0f}, {1.0f}, 1};
    CHECK(one_pass(low, 1).output()[0] == 1.0f);
    CHECK(one_pass(low, 1).softmax.lse() == -20000.0f);
}

TEST_CASE("the trace says what happened") {
    Random random(7);
    const Inputs in = random_inputs(random, 11, 3, 4.0f);
    const auto trace = trace_online_softmax(in.scores, 4, in.values, 3);
    REQUIRE(trace.size() == 3);
    CHECK(trace[2].scores.size() == 3);
    CHECK(trace[0].before.softmax.max == -INFINITE);
    for (std::size_t b = 0; b < trace.size(); ++b) {
        const TraceStep& step = trace[b];
        if (b > 0) CHECK(step.before.softmax.sum == trace[b - 1].after.softmax.sum);
        CHECK(step.correction >= 0.0f);
        CHECK(step.correction <= 1.0f);
        float sum = step.before.softmax.sum * step.correction;
        for (const float weight : step.weights) sum += weight;
        CHECK(sum == doctest::Approx(step.after.softmax.sum).epsilon(1e-6));
    }
    const auto json = nlohmann::json::parse(to_json(trace).dump());
    REQUIRE(json.size() == 3);
    CHECK(json[0]["m_old"].is_null());
    CHECK(json[1]["m_old"] == json[0]["m_new"]);
    CHECK(json[2]["acc_new"].size() == 3);
}

TEST_CASE("sizes that do not fit are refused") {
    AttentionState state(2);
    std::vector<float> scores(3), values(5);
    CHECK_THROWS_AS(update(state, scores, values), std::invalid_argument);
    CHECK_THROWS_AS(merge(state, AttentionState(3)), std::invalid_argument);
    CHECK_THROWS_AS(merge_tree({}), std::invalid_argument);
    CHECK_THROWS_AS(merge_one_by_one({}), std::invalid_argument);
    CHECK_THROWS_AS(merge_backwards({}), std::invalid_argument);
    CHECK_THROWS_AS(states_of_blocks(scores, 0, {}, 0), std::invalid_argument);
    CHECK_THROWS_AS(states_of_blocks(scores, 1, values, 2), std::invalid_argument);
    CHECK_THROWS_AS(two_passes(scores, values, 2), std::invalid_argument);
    CHECK_THROWS_AS(trace_online_softmax(scores, 0, {}, 0), std::invalid_argument);
    CHECK_THROWS_AS(trace_online_softmax(scores, 1, values, 2), std::invalid_argument);
    CHECK(trace_online_softmax({}, 1, {}, 0).empty());
}

TEST_CASE("exp overflows where the logarithm of the largest number says") {
    CHECK(last_finite_exp(DType::f16) == doctest::Approx(11.0901).epsilon(1e-5));
    CHECK(last_finite_exp(DType::bf16) == doctest::Approx(88.7248).epsilon(1e-4));
    CHECK(last_finite_exp(DType::f32) == doctest::Approx(88.7228).epsilon(1e-6));
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
        const float x = last_finite_exp(dtype) + 1;
        const std::vector<float> scores{x, x};
        CHECK(std::isinf(softmax_without_max(scores, dtype).sum));
        CHECK(std::isnan(softmax_without_max(scores, dtype).weights[0]));
        CHECK(softmax_with_max(scores, dtype).weights == std::vector<float>{0.5f, 0.5f});
    }
}

TEST_CASE("the guard is needed") {
    const std::vector<float> leading{-INFINITE, -INFINITE, 1, 2},
        trailing{1, 2, -INFINITE, -INFINITE};
    CHECK(std::isnan(unguarded_online_softmax(leading, 2).sum));
    CHECK(unguarded_online_softmax(trailing, 2).sum == doctest::Approx(1 + std::exp(-1.0)));
    CHECK(std::isnan(unguarded_online_softmax({leading.data(), 2}, 2).sum));
}

}  // namespace
}  // namespace fa
