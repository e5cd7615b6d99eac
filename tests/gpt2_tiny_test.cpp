/// @file
/// The model that comes with chapter 7, on the text that comes with it, against the losses and the
/// continuation of an independent implementation.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "chapters/07_gpt2_124m/attention_statistics.h"
#include "chapters/07_gpt2_124m/experiment.h"
#include "chapters/07_gpt2_124m/model_text.h"
#include "chapters/07_gpt2_124m/reference_losses.h"
#include "chapters/implementations.h"
#include "tests/refusal.h"
#include "tests/temporary_directory.h"

using namespace fa;
using namespace fa::testing;

namespace {

const std::filesystem::path TINY =
    std::filesystem::path(FA_SOURCE_DIR) / "chapters/07_gpt2_124m/tiny_gpt";

/// Sequences evaluated: all, or so many that a build without optimisation ends in time.
#ifdef NDEBUG
constexpr std::int64_t SEQUENCES = 17;
#else
constexpr std::int64_t SEQUENCES = 2;
#endif

}  // namespace

TEST_CASE("tiny GPT: losses per sequence, and the prompt continued") {
    const Gpt2 model = read_gpt2(TINY);
    const ReferenceLosses reference = read_reference_losses(TINY / "reference.json");
    CHECK(reference.sequence_losses.size() >= 17);
    const ByteTokenizer tokenizer;
    Experiment experiment;
    experiment.tokens =
        read_tokens(TINY / reference.tokens_file, TokenFormat::text, model.config, &tokenizer);
    experiment.plan = {.count = static_cast<std::int64_t>(experiment.tokens.size()) - 1,
                       .context = 1024,
                       .batch = 3};
    experiment.prompt = tokenizer.encode(reference.prompt);
    experiment.generate_count = static_cast<std::int64_t>(reference.continuation.size());
    CHECK(experiment.plan.count == reference.targets);
    experiment.plan.count = std::min(experiment.plan.count, SEQUENCES * 1024);
    for (const Implementation& implementation : all_implementations()) {
        if (implementation.device != Device::cpu || implementation.rounds_scores) continue;
        CAPTURE(implementation.name);
        const Run run = experiment.run(model, implementation, DType::f32, {});
        const auto distance = reference.distance(experiment.plan, run.evaluation);
        REQUIRE(distance);
        CHECK(distance->sequences == SEQUENCES);
        CHECK(distance->largest <= 1e-4);
        CHECK(run.continuation == reference.continuation);
    }
}

TEST_CASE("tiny GPT: scores in bf16 move the loss, bf16 everywhere else does not") {
    const Gpt2 model = read_gpt2(TINY);
    const ByteTokenizer tokenizer;
    Experiment experiment;
    experiment.tokens =
        read_tokens(TINY / "sample.txt", TokenFormat::text, model.config, &tokenizer);
    experiment.plan = {
        .count = std::min<std::int64_t>(SEQUENCES, 4) * 1024, .context = 1024, .batch = 4};
    const auto loss = [&](const char* name, DType activations) {
        return experiment.run(model, implementation_named(name), activations, {}).evaluation.loss;
    };
    const double fp32 = loss("cpu_naive", DType::f32);
    CHECK(std::abs(loss("cpu_naive", DType::bf16) - fp32) <= 1e-3);
    CHECK(std::abs(loss("cpu_fast", DType::bf16) - fp32) <= 1e-3);
    CHECK(loss("cpu_naive_bf16_scores", DType::f32) - fp32 > 0.1);
    CHECK(loss("cpu_naive_bf16_scores", DType::bf16) - fp32 > 0.1);

    ForwardOptions options;
    options.attention = &implementation_named("cpu_fast");
    const std::vector<double> largest =
        largest_scores(model, options, experiment.tokens, experiment.plan);
    REQUIRE(largest.size() == 4);
    CHECK(bf16_step(largest[0]) == 4);
}

TEST_CASE("reference losses: what they are compared with") {
    ReferenceLosses reference;
    reference.context = 10;
    reference.targets = 25;
    reference.sequence_losses = {1, 2, 3};
    Evaluation evaluation;
    evaluation.sequence_losses = {1.5, 2, 3};
    const auto distance = [&](const EvaluationPlan& plan) {
        return reference.distance(plan, evaluation);
    };
    CHECK(distance({25, 10, 1})->sequences == 3);
    CHECK(distance({25, 10, 1})->largest == 0.5);
    CHECK(distance({20, 10, 1})->sequences == 2);
    CHECK(distance({24, 10, 1})->sequences == 2);  // the last sequences are not the same
    CHECK(!distance({25, 5, 1}));
    CHECK(!distance({9, 10, 1}));
    evaluation.sequence_losses[1] = NAN;
    CHECK(std::isnan(distance({25, 10, 1})->largest));

    const TemporaryDirectory directory;
    for (const char* text :
         {"", "{}", "[]", "{\"per_sequence_loss_f32\": 3}", "{\"per_sequence_loss_f32\": [\"x\"]}",
          "{\"per_sequence_loss_f32\": [1, 2], \"context\": 0}",
          "{\"per_sequence_loss_f32\": [1, 2], \"context\": 10, \"targets\": 21}",
          "{\"per_sequence_loss_f32\": [1, 2], \"context\": 9223372036854775807}",
          "{\"per_sequence_loss_f32\": [1, 2], \"targets\": 9223372036854775807}",
          "{\"per_sequence_loss_f32\": [1, 2], \"context\": 18446744073709551615}",
          "{\"per_sequence_loss_f32\": [1, 2], \"context\": 1e30}",
          "{\"per_sequence_loss_f32\": [1], \"tokens_file\": \"../x\"}",
          "{\"per_sequence_loss_f32\": [1], \"tokens_file\": \"/etc/x\"}",
          "{\"per_sequence_loss_f32\": [1], \"tokens_file\": \"..\"}",
          "{\"per_sequence_loss_f32\": [1], \"tokens_file\": \"\\u001b[2J\"}",
          "{\"per_sequence_loss_f32\": [1], \"greedy_f32\": {\"prompt\": \"x\", "
          "\"new_tokens\": [1e30]}}"}) {
        CAPTURE(text);
        const auto path = directory.write("reference.json", text);
        CHECK(one_line(refusal([&] { read_reference_losses(path); })));
    }
}

TEST_CASE("tokens of a model: shards, bytes and text") {
    const TemporaryDirectory directory;
    Gpt2Config bytes;
    bytes.vocabulary = 256;
    const ByteTokenizer tokenizer;
    const auto raw = directory.write("val.bin", std::string("ab\0\xff", 4));
    CHECK(token_format_of(raw) == TokenFormat::shard);
    CHECK(token_format_of("a.txt") == TokenFormat::text);
    CHECK(token_format_of("bin") == TokenFormat::text);
    CHECK(read_tokens(raw, TokenFormat::text, bytes, &tokenizer) ==
          std::vector<std::int32_t>{97, 98, 0, 255});
    // Bytes can be read from any file; what is meant as a shard is not, whatever the vocabulary.
    CHECK(one_line(refusal([&] { read_tokens(raw, TokenFormat::shard, bytes, &tokenizer); })));
    CHECK(dynamic_cast<ByteTokenizer*>(tokenizer_of(directory.path(), bytes).get()));

    Gpt2Config words;
    words.vocabulary = 1000;
    CHECK(!tokenizer_of(directory.path(), words));
    CHECK(one_line(refusal([&] { read_tokens(raw, TokenFormat::shard, words, nullptr); })));
    const auto text = directory.write("val.txt", "ab");
    CHECK(refusal([&] {
              read_tokens(text, TokenFormat::text, words, nullptr);
          }).find("tokenizer") != std::string::npos);

    std::string shard(1024, '\0');
    const std::int32_t header[] = {20240520, 1, 2};
    shard.replace(0, sizeof header, reinterpret_cast<const char*>(header), sizeof header);
    const std::uint16_t ids[] = {7, 999};
    shard.append(reinterpret_cast<const char*>(ids), sizeof ids);
    const auto file = directory.write("shard", shard);
    CHECK(read_tokens(file, TokenFormat::shard, words, nullptr) ==
          std::vector<std::int32_t>{7, 999});
    words.vocabulary = 999;
    CHECK(refusal([&] { read_tokens(file, TokenFormat::shard, words, nullptr); }).find("999") !=
          std::string::npos);
    CHECK(one_line(refusal(
        [&] { read_tokens(directory.write("empty", ""), TokenFormat::text, bytes, &tokenizer); })));
    CHECK(one_line(refusal(
        [&] { read_tokens(directory.path() / "none", TokenFormat::text, bytes, &tokenizer); })));
    // A shard whose magic number or version has a wrong bit is refused, not read as bytes.
    for (const std::size_t at : {0u, 4u}) {
        std::string damaged = shard;
        damaged[at] = static_cast<char>(damaged[at] ^ 1);
        const auto bad = directory.write("damaged.bin", damaged);
        CHECK(
            one_line(refusal([&] { read_tokens(bad, token_format_of(bad), bytes, &tokenizer); })));
    }

    // A tokenizer of more ids than the network has is another network's.
    directory.write("vocab.json", "{}");
    directory.write("merges.txt", "");
    CHECK(one_line(refusal([&] { tokenizer_of(directory.path(), bytes); })));
}
