/// @file
/// Configs and weights of GPT-2 as they come in files: the kinds there are, and what is refused.

#include <doctest/doctest.h>

#include <algorithm>

#include "chapters/07_gpt2_124m/gpt2_config.h"
#include "chapters/07_gpt2_124m/gpt2_weights.h"
#include "tests/gpt2_files.h"
#include "tests/refusal.h"
#include "tests/temporary_directory.h"

using namespace fa;
using namespace fa::testing;

namespace {

/// What is said of small_model()'s config with one key replaced; null takes the key away.
std::string refusal_of(const std::string& key, const nlohmann::json& value) {
    nlohmann::json config = small_model().config;
    config[key] = value;
    if (value.is_null()) config.erase(key);
    return refusal([&] { parse_gpt2_config(config.dump(), "config"); });
}

Gpt2Config config_with(const std::string& key, const nlohmann::json& value) {
    nlohmann::json config = small_model().config;
    config[key] = value;
    return parse_gpt2_config(config.dump(), "config");
}

Gpt2Weights read_back(const ModelFiles& files, DType dtype = DType::f32) {
    const TemporaryDirectory directory;
    files.write(directory.path(), dtype);
    return read_gpt2_weights(directory.path() / "model.safetensors",
                             read_gpt2_config(directory.path() / "config.json"));
}

void check_same(const Gpt2Weights& a, const Gpt2Weights& b) {
    CHECK(a.token_embedding == b.token_embedding);
    CHECK(a.position_embedding == b.position_embedding);
    CHECK(a.head() == b.head());
    CHECK(a.final_norm.gain == b.final_norm.gain);
    CHECK(a.final_norm.bias == b.final_norm.bias);
    REQUIRE(a.blocks.size() == b.blocks.size());
    for (std::size_t n = 0; n < a.blocks.size(); ++n) {
        CHECK(a.blocks[n].norm_1.gain == b.blocks[n].norm_1.gain);
        CHECK(a.blocks[n].norm_1.bias == b.blocks[n].norm_1.bias);
        CHECK(a.blocks[n].norm_2.gain == b.blocks[n].norm_2.gain);
        CHECK(a.blocks[n].norm_2.bias == b.blocks[n].norm_2.bias);
        for (const auto linear : {&BlockWeights::qkv, &BlockWeights::projection,
                                  &BlockWeights::expand, &BlockWeights::contract}) {
            CHECK((a.blocks[n].*linear).weight == (b.blocks[n].*linear).weight);
            CHECK((a.blocks[n].*linear).bias == (b.blocks[n].*linear).bias);
        }
    }
}

}  // namespace

TEST_CASE("config: extents, defaults and derived numbers") {
    const Gpt2Config small = parse_gpt2_config(small_model().config.dump(), "config");
    CHECK(small.layers == 2);
    CHECK(small.heads == 3);
    CHECK(small.width == 30);
    CHECK(small.head_dim() == 10);
    CHECK(small.inner == 44);
    CHECK(small.context == 40);
    CHECK(small.vocabulary == 53);
    CHECK(small.tied_head);
    CHECK(small.attention_scale(1) == doctest::Approx(1 / std::sqrt(10.0)));
    CHECK(config_with("n_inner", nullptr).inner == 120);
    CHECK(config_with("activation_function", "gelu_pytorch_tanh").width == 30);
    CHECK(config_with("scale_attn_weights", false).attention_scale(1) == 1);
    CHECK(config_with("scale_attn_by_inverse_layer_idx", true).attention_scale(1) ==
          doctest::Approx(0.5 / std::sqrt(10.0)));
    CHECK(config_with("reorder_and_upcast_attn", true).width == 30);

    nlohmann::json old = small_model().config;
    old.erase("n_positions");
    old["n_ctx"] = 7;
    CHECK(parse_gpt2_config(old.dump(), "config").context == 7);

    // The 124M model: what is known of it.
    Gpt2Config gpt2;
    gpt2.layers = gpt2.heads = 12;
    gpt2.width = 768;
    gpt2.inner = 3072;
    gpt2.context = 1024;
    gpt2.vocabulary = 50257;
    CHECK(gpt2.parameters() == 124439808);
    CHECK(gpt2.matrix_flops_per_token() == 2.0 * (12 * 12 * 768 * 768 + 50257 * 768));
}

TEST_CASE("config: what is refused, by name") {
    for (const char* key : {"n_layer", "n_head", "n_embd", "n_positions", "vocab_size"}) {
        CAPTURE(key);
        for (const nlohmann::json& value : std::vector<nlohmann::json>{
                 nullptr, 0, -1, 1.5, "12", true, 18446744073709551615u, 1e300, {1}}) {
            const std::string message = refusal_of(key, value);
            CAPTURE(value.dump());
            CHECK(one_line(message));
            // Without n_positions the older name is looked for.
            const bool older = value.is_null() && std::string(key) == "n_positions";
            CHECK(message.find(older ? "n_ctx" : key) != std::string::npos);
        }
    }
    CHECK(refusal_of("n_head", 4).find("not a multiple") != std::string::npos);
    CHECK(refusal_of("activation_function", "gelu").find("gelu_new") != std::string::npos);
    CHECK(refusal_of("activation_function", 3).find("activation_function") != std::string::npos);
    CHECK(refusal_of("model_type", "llama").find("llama") != std::string::npos);
    CHECK(refusal_of("add_cross_attention", true).find("cross-attention") != std::string::npos);
    CHECK(refusal_of("tie_word_embeddings", 1).find("tie_word_embeddings") != std::string::npos);
    CHECK(refusal_of("layer_norm_epsilon", 0).find("layer_norm_epsilon") != std::string::npos);
    CHECK(refusal_of("layer_norm_epsilon", "x").find("layer_norm_epsilon") != std::string::npos);
    for (const char* text : {"", "{", "[]", "3", "null", "{\"n_layer\": }", "\xff"}) {
        CAPTURE(text);
        CHECK(one_line(refusal([&] { parse_gpt2_config(text, "config"); })));
    }
    // What is written in a file must not act on the terminal: escape, DEL, and U+009B.
    for (const char* key : {"n_layer", "model_type", "activation_function"}) {
        const std::string message = refusal_of(key, "\x1b[2J\x7f\xc2\x9b");
        CHECK(message.find("\\x1b[2J\\x7f\\xc2\\x9b") != std::string::npos);
        CHECK(one_line(message));
    }
    const std::string deep(100000, '[');
    CHECK(one_line(refusal([&] { parse_gpt2_config(deep, "config"); })));
    CHECK(one_line(refusal([] { read_gpt2_config("/no/such/config.json"); })));
}

TEST_CASE("weights: prefix and mask buffers change nothing") {
    const Gpt2Weights plain = read_back(small_model());
    CHECK(plain.own_head.empty());
    CHECK(plain.blocks.size() == 2);
    CHECK(plain.blocks[1].contract.in == 44);
    CHECK(plain.blocks[1].contract.out == 30);

    ModelFiles prefixed = small_model();
    prefixed.add_prefix();
    check_same(read_back(prefixed), plain);

    for (const bool prefix : {false, true}) {
        ModelFiles masked = small_model();
        for (const char* layer : {"h.0.attn.", "h.1.attn."}) {
            masked.tensors[std::string(layer) + "bias"] = {{1, 1, 40, 40},
                                                           std::vector<float>(1600, 1)};
            masked.tensors[std::string(layer) + "masked_bias"] = {{}, {-10000}};
        }
        if (prefix) masked.add_prefix();
        check_same(read_back(masked), plain);
    }
}

TEST_CASE("weights: F16 and BF16 are widened exactly") {
    for (const DType dtype : {DType::f16, DType::bf16}) {
        CAPTURE(name_of(dtype));
        Gpt2Weights rounded = read_back(small_model());
        round_weights(rounded, dtype);
        check_same(read_back(small_model(), dtype), rounded);
        CHECK(rounded.token_embedding != read_back(small_model()).token_embedding);
    }
}

TEST_CASE("weights: tied and separate heads") {
    const std::vector<float> embedding = small_model().tensors["wte.weight"].values;
    ModelFiles separate = small_model();
    separate.tensors["lm_head.weight"] = small_model(2).tensors["wte.weight"];
    const std::vector<float> head = separate.tensors["lm_head.weight"].values;

    // The config decides. A head that contradicts it is no guess of ours.
    const std::string contradiction = refusal([&] { read_back(separate); });
    CHECK(contradiction.find("lm_head.weight differs") != std::string::npos);
    separate.config["tie_word_embeddings"] = false;
    CHECK(read_back(separate).head() == head);
    separate.add_prefix();
    CHECK(read_back(separate).head() == head);

    ModelFiles repeated = small_model();
    repeated.tensors["lm_head.weight"] = repeated.tensors["wte.weight"];
    CHECK(read_back(repeated).own_head.empty());
    CHECK(read_back(repeated).head() == embedding);

    ModelFiles headless = small_model();
    headless.config["tie_word_embeddings"] = false;
    CHECK(refusal([&] { read_back(headless); }).find("lm_head.weight") != std::string::npos);
}

TEST_CASE("weights: a missing or foreign tensor and a wrong shape are named") {
    for (const auto& [name, unused] : small_model().tensors) {
        for (const bool prefix : {false, true}) {
            ModelFiles files = small_model();
            files.tensors.erase(name);
            if (prefix) files.add_prefix();
            const std::string message = refusal([&] { read_back(files); });
            CAPTURE(message);
            CHECK(one_line(message));
            CHECK(message.find(name) != std::string::npos);
        }
        ModelFiles files = small_model();
        FileTensor& tensor = files.tensors[name];
        tensor.shape.back() += 1;
        std::int64_t count = 1;
        for (const std::int64_t extent : tensor.shape) count *= extent;
        tensor.values.resize(static_cast<std::size_t>(count));
        CHECK(refusal([&] { read_back(files); }).find(name) != std::string::npos);
    }
    // Transposed, as a network that stores [out, in] would have it: same size, other meaning.
    ModelFiles transposed = small_model();
    std::ranges::reverse(transposed.tensors["h.1.attn.c_attn.weight"].shape);
    CHECK(refusal([&] { read_back(transposed); }).find("h.1.attn.c_attn.weight") !=
          std::string::npos);
    // A layer more than the config has would be left out silently.
    ModelFiles deeper = small_model();
    deeper.tensors["h.2.ln_1.weight"] = deeper.tensors["h.1.ln_1.weight"];
    CHECK(refusal([&] { read_back(deeper); }).find("h.2.ln_1.weight") != std::string::npos);
    ModelFiles rude = small_model();
    rude.tensors["\x1b[2J\xc2\x9b"] = rude.tensors["ln_f.bias"];
    CHECK(refusal([&] { read_back(rude); }).find("\"\\x1b[2J\\xc2\\x9b\"") != std::string::npos);
    ModelFiles shallower = small_model();
    shallower.config["n_layer"] = 16000000;
    CHECK(refusal([&] { read_back(shallower); }).find("h.2.ln_1.weight") != std::string::npos);
}
