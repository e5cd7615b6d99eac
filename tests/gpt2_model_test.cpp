/// @file
/// The forward pass and the loss against the same in fp64, with every attention of the list.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "chapters/07_gpt2_124m/attention_statistics.h"
#include "chapters/07_gpt2_124m/cross_entropy.h"
#include "chapters/07_gpt2_124m/evaluation.h"
#include "chapters/07_gpt2_124m/experiment.h"
#include "chapters/implementations.h"
#include "common/random.h"
#include "tests/gpt2_files.h"
#include "tests/gpt2_fp64.h"
#include "tests/refusal.h"
#include "tests/temporary_directory.h"

using namespace fa;
using namespace fa::testing;

namespace {

Gpt2 read_back(const ModelFiles& files) {
    const TemporaryDirectory directory;
    files.write(directory.path());
    return read_gpt2(directory.path());
}

std::vector<std::int32_t> random_tokens(std::int64_t count, std::int64_t vocabulary = 53) {
    Random random(7);
    std::vector<std::int32_t> tokens;
    for (std::int64_t i = 0; i < count; ++i)
        tokens.push_back(
            static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocabulary))));
    return tokens;
}

std::vector<const Implementation*> cpu_implementations() {
    std::vector<const Implementation*> list;
    for (const Implementation& implementation : all_implementations())
        if (implementation.device == Device::cpu) list.push_back(&implementation);
    return list;
}

ForwardOptions with(const char* name) {
    ForwardOptions options;
    options.attention = &implementation_named(name);
    return options;
}

/// Mean losses of the sequences of a plan in fp64.
std::vector<double> sequence_losses_fp64(const Gpt2& model, const std::vector<std::int32_t>& tokens,
                                         const EvaluationPlan& plan) {
    std::vector<double> means;
    for (std::int64_t i = 0; i < plan.sequences(); ++i) {
        const auto start = static_cast<std::size_t>(i * plan.context);
        const auto length = static_cast<std::size_t>(plan.length(i));
        const std::span<const std::int32_t> all = tokens;
        double sum = 0;
        for (const double loss :
             gpt2_losses_fp64(model, all.subspan(start, length), all.subspan(start + 1, length)))
            sum += loss;
        means.push_back(sum / static_cast<double>(length));
    }
    return means;
}

void check_against_fp64(const ModelFiles& files) {
    const Gpt2 model = read_back(files);
    const EvaluationPlan plan{.count = 3 * 40 + 17, .context = 40, .batch = 2};
    const std::vector<std::int32_t> tokens = random_tokens(plan.count + 1);
    const std::vector<double> want = sequence_losses_fp64(model, tokens, plan);
    for (const Implementation* implementation : cpu_implementations()) {
        CAPTURE(implementation->name);
        ForwardOptions options;
        options.attention = implementation;
        const Evaluation got = evaluate(model, options, tokens, plan);
        REQUIRE(got.sequence_losses.size() == want.size());
        // bf16 scores of size 1 to 8 are off by up to 2^-9 to 2^-6 each.
        const double bound = implementation->rounds_scores ? 0.05 : 2e-5;
        for (std::size_t i = 0; i < want.size(); ++i)
            CHECK(std::abs(got.sequence_losses[i] - want[i]) <= bound);
        CHECK(got.attention_seconds > 0);
        CHECK(got.attention_seconds < got.seconds);
    }
}

}  // namespace

TEST_CASE("losses of a small network, head dimension 10") {
    check_against_fp64(small_model());
}

TEST_CASE("losses with a separate head and with other scales") {
    ModelFiles files = small_model();
    files.config["tie_word_embeddings"] = false;
    files.tensors["lm_head.weight"] = small_model(2).tensors["wte.weight"];
    files.config["scale_attn_by_inverse_layer_idx"] = true;
    check_against_fp64(files);
    files.config["scale_attn_weights"] = false;
    check_against_fp64(files);
}

TEST_CASE("logits of each position") {
    const Gpt2 model = read_back(small_model());
    const std::vector<std::int32_t> tokens = random_tokens(40);
    const std::vector<double> want = gpt2_logits_fp64(model, tokens);
    Forward forward(model, with("cpu_naive"), 1, 40);
    const std::span<const float> hidden = forward.run(tokens);
    std::vector<float> got(53);
    for (std::size_t i = 0; i < 40; ++i) {
        logits(model, hidden.subspan(i * 30, 30), {}, got);
        for (std::size_t word = 0; word < 53; ++word)
            CHECK(std::abs(double{got[word]} - want[i * 53 + word]) <= 1e-4);
    }
}

TEST_CASE("a vocabulary of several tiles, with logits far apart") {
    // One layer, and a head so large that logits reach hundreds: the running maximum has work to
    // do.
    Gpt2 model = read_back(small_model());
    model.config.vocabulary = 1300;
    Random random(5);
    model.weights.own_head.resize(1300 * 30);
    random.fill_normal(model.weights.own_head, 20.0f);
    const std::vector<std::int32_t> targets = random_tokens(300, 1300);
    std::vector<float> hidden(300 * 30);
    random.fill_normal(hidden);
    std::vector<double> losses(300);
    cross_entropy(model, hidden, targets, {}, losses);
    for (std::size_t i = 0; i < 300; ++i) {
        std::vector<double> row(1300);
        for (std::size_t word = 0; word < 1300; ++word)
            for (std::size_t c = 0; c < 30; ++c)
                row[word] +=
                    double{hidden[i * 30 + c]} * double{model.weights.own_head[word * 30 + c]};
        const double max = *std::max_element(row.begin(), row.end());
        double sum = 0;
        for (const double logit : row) sum += std::exp(logit - max);
        const double want = max + std::log(sum) - row[static_cast<std::size_t>(targets[i])];
        CHECK(std::abs(losses[i] - want) <= 2e-4);
    }
    // NaN in one row's hidden state is that row's alone.
    hidden[17 * 30 + 3] = NAN;
    std::vector<double> spoiled(300);
    cross_entropy(model, hidden, targets, {}, spoiled);
    for (std::size_t i = 0; i < 300; ++i) {
        if (i == 17)
            CHECK(std::isnan(spoiled[i]));
        else
            CHECK(spoiled[i] == losses[i]);
    }
}

TEST_CASE("batch, context and threads do not change the mean") {
    const Gpt2 model = read_back(small_model());
    const std::vector<std::int32_t> tokens = random_tokens(40 * 5 + 8);
    EvaluationPlan plan{.count = 40 * 5 + 7, .context = 40, .batch = 1};
    ForwardOptions options = with("cpu_fast");
    options.threads = 1;
    const Evaluation alone = evaluate(model, options, tokens, plan);
    CHECK(alone.sequence_losses.size() == 6);
    double weighted = 0;
    for (std::size_t i = 0; i < 6; ++i) weighted += alone.sequence_losses[i] * (i < 5 ? 40 : 7);
    CHECK(alone.loss == doctest::Approx(weighted / 207).epsilon(1e-12));
    for (const std::int64_t batch : {2, 3, 5, 6, 100}) {
        for (const int threads : {1, 2, 5}) {
            CAPTURE(batch);
            CAPTURE(threads);
            plan.batch = batch;
            options.threads = threads;
            const Evaluation together = evaluate(model, options, tokens, plan);
            CHECK(std::abs(together.loss - alone.loss) <= 1e-6);
            for (std::size_t i = 0; i < 6; ++i)
                CHECK(std::abs(together.sequence_losses[i] - alone.sequence_losses[i]) <= 1e-6);
        }
    }
    // A sequence of one token is a sequence.
    plan = {.count = 5, .context = 1, .batch = 2};
    const std::vector<double> want = sequence_losses_fp64(model, tokens, plan);
    const Evaluation single = evaluate(model, options, tokens, plan);
    for (std::size_t i = 0; i < 5; ++i)
        CHECK(std::abs(single.sequence_losses[i] - want[i]) <= 2e-5);
}

TEST_CASE("one thread or many: the same bits") {
    const Gpt2 model = read_back(small_model());
    const EvaluationPlan plan{.count = 200, .context = 40, .batch = 3};
    const std::vector<std::int32_t> tokens = random_tokens(201);
    for (const Implementation* implementation : cpu_implementations()) {
        CAPTURE(implementation->name);
        std::vector<std::vector<double>> losses;
        for (const int threads : {1, 2, 4}) {
            ForwardOptions options;
            options.attention = implementation;
            options.threads = threads;
            losses.push_back(evaluate(model, options, tokens, plan).sequence_losses);
        }
        CHECK(losses[1] == losses[0]);
        CHECK(losses[2] == losses[0]);
    }
}

TEST_CASE("16-bit activations are near, and not the same") {
    const Gpt2 model = read_back(small_model());
    const EvaluationPlan plan{.count = 160, .context = 40, .batch = 4};
    const std::vector<std::int32_t> tokens = random_tokens(161);
    const double exact = evaluate(model, with("cpu_naive"), tokens, plan).loss;
    for (const DType dtype : {DType::bf16, DType::f16}) {
        CAPTURE(name_of(dtype));
        Gpt2 rounded = model;
        round_weights(rounded.weights, dtype);
        for (const Implementation* implementation : cpu_implementations()) {
            ForwardOptions options;
            options.attention = implementation;
            options.activations = dtype;
            const double loss = evaluate(rounded, options, tokens, plan).loss;
            CHECK(std::abs(loss - exact) <= 0.05);
            CHECK(loss != exact);
        }
    }
}

TEST_CASE("what does not fit is refused") {
    const Gpt2 model = read_back(small_model());
    const ForwardOptions options = with("cpu_naive");
    CHECK(refusal([&] { Forward(model, options, 1, 41); }).find("context of 40") !=
          std::string::npos);
    CHECK(one_line(refusal([&] { Forward(model, options, 0, 40); })));
    CHECK(one_line(refusal([&] { Forward(model, options, 2, 40, Forward::Cache::keep); })));
    CHECK(one_line(refusal([&] { Forward(model, {}, 1, 40); })));
    Forward forward(model, options, 2, 20);
    CHECK(one_line(refusal([&] { forward.run({}); })));
    CHECK(one_line(refusal([&] { forward.run(random_tokens(21)); })));
    CHECK(one_line(refusal([&] { forward.run(random_tokens(41), 2); })));
    CHECK(one_line(refusal([&] { forward.run(random_tokens(3), 2); })));
    CHECK(one_line(refusal([&] { forward.run(random_tokens(3), 3); })));
    for (const std::int32_t id : {-1, 53, 2147483647}) {
        const std::vector<std::int32_t> tokens{0, id};
        CHECK(refusal([&] { forward.run(tokens); }).find(std::to_string(id)) != std::string::npos);
        std::vector<double> losses(2);
        CHECK(one_line(
            refusal([&] { cross_entropy(model, std::vector<float>(60), tokens, {}, losses); })));
    }
    const std::vector<std::int32_t> tokens = random_tokens(30);
    for (const EvaluationPlan& plan :
         {EvaluationPlan{30, 10, 1}, EvaluationPlan{0, 10, 1}, EvaluationPlan{29, 0, 1},
          EvaluationPlan{29, 10, 0}, EvaluationPlan{29, -1, 1}})
        CHECK(one_line(refusal([&] { evaluate(model, options, tokens, plan); })));
}

TEST_CASE("the largest score") {
    // Three queries against five keys, two heads: head 1's largest lies where the mask hides it.
    Tensor<float> q(Shape{1, 2, 3, 4}), k(Shape{1, 2, 5, 4}), v(Shape{1, 2, 5, 4}),
        o(Shape{1, 2, 3, 4});
    q(0, 0, 1, 2) = 2, k(0, 0, 3, 2) = -3;     // query 1 sees keys 0 to 3
    q(0, 1, 1, 0) = 10, k(0, 1, 4, 0) = 1000;  // and not key 4
    AttentionProblem problem{.heads_q = 2, .heads_kv = 2, .len_q = 3, .len_kv = 5, .head_dim = 4};
    problem.causal = true;
    problem.scale = -0.5f;
    const AttentionTensors tensors{q.view(), k.view(), v.view(), o.view(), {}};
    CHECK(largest_score(problem, tensors) == 3);
    problem.causal = false;
    CHECK(largest_score(problem, tensors) == 5000);
    k(0, 0, 0, 0) = NAN;
    CHECK(std::isnan(largest_score(problem, tensors)));
    problem.len_q = problem.len_kv = 0;
    const Tensor<float> none(Shape{1, 2, 0, 4});
    CHECK(largest_score(problem, {none.view(), none.view(), none.view(), {}, {}}) == 0);
    CHECK(bf16_step(693.46) == 4);
    CHECK(bf16_step(1) == 0x1p-7);
    CHECK(bf16_step(0) == 0);
    CHECK(std::isnan(bf16_step(NAN)));
    CHECK(std::isnan(bf16_step(INFINITY)));
}
