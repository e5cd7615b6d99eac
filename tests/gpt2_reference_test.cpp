/// @file
/// The reference values of larger models, where the folder FA_REFERENCE_MODELS has them: losses per
/// sequence, logits, greedy text and the sizes of scores, from an independent implementation.

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "chapters/07_gpt2_124m/attention_statistics.h"
#include "chapters/07_gpt2_124m/cross_entropy.h"
#include "chapters/07_gpt2_124m/evaluation.h"
#include "chapters/07_gpt2_124m/generation.h"
#include "chapters/07_gpt2_124m/model_text.h"
#include "chapters/07_gpt2_124m/reference_losses.h"
#include "chapters/implementations.h"
#include "tests/reference_models.h"

using namespace fa;
using namespace fa::testing;
namespace fs = std::filesystem;

namespace {

nlohmann::json read_json(const fs::path& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot open " + path.string());
    return nlohmann::json::parse(file);
}

ForwardOptions with(const char* name, DType activations = DType::f32) {
    ForwardOptions options;
    options.attention = &implementation_named(name);
    options.activations = activations;
    return options;
}

/// Losses of the first sequences, each against the reference's.
double check_losses(const Gpt2& model, const fs::path& folder, const char* attention,
                    std::span<const std::int32_t> tokens, std::int64_t sequences) {
    CAPTURE(attention);
    const ReferenceLosses reference = read_reference_losses(folder / "reference.json");
    const EvaluationPlan plan{.count = sequences * 1024, .context = 1024, .batch = 4};
    const Evaluation evaluation = evaluate(model, with(attention), tokens, plan);
    const auto distance = reference.distance(plan, evaluation);
    REQUIRE(distance);
    CHECK(distance->sequences == sequences);
    CHECK(distance->largest <= 1e-4);
    return evaluation.loss;
}

/// The first logits, the largest one and the log-sum-exp at some positions.
void check_logits(const Gpt2& model, const nlohmann::json& expected,
                  std::span<const std::int32_t> tokens) {
    for (const auto& entry : expected) {
        const auto sequence = entry["sequence"].get<std::size_t>();
        const auto position = entry["position"].get<std::size_t>();
        CAPTURE(sequence);
        CAPTURE(position);
        const auto input = tokens.subspan(sequence * 1024, position + 1);
        CHECK(input.back() == entry["input_token"].get<std::int32_t>());
        Forward forward(model, with("cpu_fast"), 1, static_cast<std::int64_t>(position) + 1);
        std::vector<float> got(static_cast<std::size_t>(model.config.vocabulary));
        logits(model, forward.run(input).last(static_cast<std::size_t>(model.config.width)), {},
               got);
        double max = -INFINITY, sum = 0;
        for (const float logit : got) max = std::max(max, double{logit});
        for (const float logit : got) sum += std::exp(double{logit} - max);
        for (std::size_t i = 0; i < 8; ++i)
            CHECK(std::abs(double{got[i]} - entry["first8"][i].get<double>()) <= 1e-3);
        CHECK(std::abs(max - entry["max"].get<double>()) <= 1e-3);
        CHECK(double{got[entry["argmax"].get<std::size_t>()]} == max);
        CHECK(std::abs(max + std::log(sum) - entry["logsumexp"].get<double>()) <= 1e-3);
    }
}

void check_greedy(const Gpt2& model, const nlohmann::json& greedy, const Tokenizer& tokenizer) {
    const auto prompt = tokenizer.encode(greedy["prompt"].get<std::string>());
    CHECK(prompt == greedy["prompt_tokens"].get<std::vector<std::int32_t>>());
    const auto expected = greedy["new_tokens"].get<std::vector<std::int32_t>>();
    for (const char* attention : {"cpu_naive", "cpu_fast"}) {
        const auto added =
            generate(model, with(attention), prompt, static_cast<std::int64_t>(expected.size()));
        CHECK(added == expected);
        CHECK(greedy["prompt"].get<std::string>() + tokenizer.decode(added) ==
              greedy["text"].get<std::string>());
    }
}

/// Where assembled weights are kept between runs of the tests.
const fs::path CACHE = FA_REFERENCE_CACHE;

/// The 124M model's weights, put together by the script beside them, in one of the kinds it offers.
fs::path assembled(const fs::path& folder, const std::string& name, const std::string& flags) {
    const fs::path directory = CACHE / name, weights = directory / "model.safetensors";
    fs::create_directories(directory);
    fs::copy_file(folder / "config.json", directory / "config.json",
                  fs::copy_options::overwrite_existing);
    if (!fs::exists(weights)) {
        const std::string command = "python3 '" + (folder / "assemble.py").string() + "' " + flags +
                                    " --out '" + weights.string() + ".part' >/dev/null";
        REQUIRE(std::system(command.c_str()) == 0);
        fs::rename(weights.string() + ".part", weights);
    }
    return directory;
}

}  // namespace

TEST_CASE("tiny GPT: all 65,536 bytes") {
    const auto folder = reference_model("tiny-gpt");
    if (!folder) return;
    const Gpt2 model = read_gpt2(*folder);
    const nlohmann::json reference = read_json(*folder / "reference.json");
    const ByteTokenizer tokenizer;
    const auto tokens =
        read_tokens(*folder / "val_bytes.bin", TokenFormat::text, model.config, &tokenizer);
    const double want = reference["loss"]["f32_naive"].get<double>();
    for (const char* attention : {"cpu_naive", "cpu_blocked", "cpu_fast"})
        CHECK(std::abs(check_losses(model, *folder, attention, tokens, 64) - want) <= 1e-4);

    check_logits(model, reference["logits_f32"], tokens);
    check_greedy(model, reference["greedy_f32"], tokenizer);

    const EvaluationPlan plan{.count = 65536, .context = 1024, .batch = 4};
    const std::vector<double> largest = largest_scores(model, with("cpu_fast"), tokens, plan);
    for (std::size_t n = 0; n < largest.size(); ++n) {
        const double score =
            reference["attention_f32"]["layers"][n]["max_abs_scaled_logit"].get<double>();
        CHECK(std::abs(largest[n] - score) <= 1e-4 * score);
    }

    // Scores in bf16: as far off as in the framework; in fp32: within 5e-4 of the fp32 loss.
    const auto bf16 = [&](const char* attention) {
        return evaluate(model, with(attention, DType::bf16), tokens, plan).loss;
    };
    CHECK(std::abs(bf16("cpu_fast") - want) <= 5e-4);
    CHECK(std::abs(bf16("cpu_naive_bf16_scores") - reference["loss"]["bf16_naive"].get<double>()) <=
          5e-3);
}

TEST_CASE("GPT-2 124M: losses, logits and text") {
    const auto folder = reference_model("gpt2-124m");
    if (!folder) return;
    const Gpt2 model = read_gpt2(assembled(*folder, "f32", "--dtype F32"));
    const nlohmann::json reference = read_json(*folder / "reference.json");
    const auto tokenizer = tokenizer_of(*folder, model.config);
    REQUIRE(tokenizer);
    const auto tokens =
        read_tokens(*folder / "val_tokens.bin", TokenFormat::shard, model.config, tokenizer.get());
    CHECK(read_tokens(*folder / "val_text.txt", TokenFormat::text, model.config, tokenizer.get()) ==
          tokens);
    check_losses(model, *folder, "cpu_fast", tokens, 8);
    check_losses(model, *folder, "cpu_naive", tokens, 2);
    check_logits(model, reference["logits_f32"], tokens);
    check_greedy(model, reference["greedy_f32"], *tokenizer);
}

TEST_CASE("GPT-2 124M: all kinds of files hold the same weights") {
    const auto folder = reference_model("gpt2-124m");
    if (!folder) return;
    Gpt2 plain = read_gpt2(assembled(*folder, "f32", "--dtype F32"));
    {
        const Gpt2 other = read_gpt2(
            assembled(*folder, "prefix", "--dtype F32 --mask-buffers --prefix transformer."));
        CHECK(other.weights.token_embedding == plain.weights.token_embedding);
        CHECK(other.weights.blocks[11].contract.weight == plain.weights.blocks[11].contract.weight);
        CHECK(other.weights.final_norm.bias == plain.weights.final_norm.bias);
    }
    for (const DType dtype : {DType::bf16, DType::f16}) {
        CAPTURE(name_of(dtype));
        const Gpt2 other = dtype == DType::bf16
                               ? read_gpt2(assembled(*folder, "bf16", "--dtype BF16"))
                               : read_gpt2(assembled(*folder, "f16", "--dtype F16"));
        Gpt2Weights rounded = plain.weights;
        round_weights(rounded, dtype);
        CHECK(other.weights.token_embedding == rounded.token_embedding);
        CHECK(other.weights.blocks[0].qkv.weight == rounded.blocks[0].qkv.weight);
        CHECK(other.weights.blocks[11].norm_2.bias == rounded.blocks[11].norm_2.bias);
    }
}
