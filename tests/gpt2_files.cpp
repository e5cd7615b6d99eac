#include "tests/gpt2_files.h"

#include <cstring>
#include <fstream>
#include <stdexcept>

#include "common/random.h"
#include "tests/safetensors_file.h"

namespace fa::testing {
namespace {

std::string bytes_of(const std::vector<float>& values, DType dtype) {
    return with_element_type(dtype, [&](auto tag) {
        using T = decltype(tag);
        std::string bytes;
        for (const float value : values) {
            const T element(value);
            char raw[sizeof element];
            std::memcpy(raw, &element, sizeof element);
            bytes.append(raw, sizeof element);
        }
        return bytes;
    });
}

}  // namespace

void ModelFiles::write(const std::filesystem::path& folder, DType dtype) const {
    std::ofstream(folder / "config.json") << config.dump(1);
    const char* const name = dtype == DType::f32 ? "F32" : dtype == DType::f16 ? "F16" : "BF16";
    nlohmann::ordered_json header;
    std::string data;
    for (const auto& [key, tensor] : tensors) {
        const std::size_t begin = data.size();
        data += bytes_of(tensor.values, dtype);
        header[key] = {
            {"dtype", name}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
    }
    std::ofstream file(folder / "model.safetensors", std::ios::binary);
    file << safetensors(header.dump(), data);
    if (!file.flush()) throw std::runtime_error("cannot write the model");
}

void ModelFiles::add_prefix() {
    std::map<std::string, FileTensor> renamed;
    for (auto& [key, tensor] : tensors)
        renamed[key == "lm_head.weight" ? key : "transformer." + key] = std::move(tensor);
    tensors = std::move(renamed);
}

ModelFiles small_model(std::uint64_t seed) {
    constexpr std::int64_t LAYERS = 2, HEADS = 3, WIDTH = 30, INNER = 44, CONTEXT = 40, WORDS = 53;
    ModelFiles files;
    files.config = {{"model_type", "gpt2"},      {"activation_function", "gelu_new"},
                    {"n_layer", LAYERS},         {"n_head", HEADS},
                    {"n_embd", WIDTH},           {"n_inner", INNER},
                    {"n_positions", CONTEXT},    {"vocab_size", WORDS},
                    {"layer_norm_epsilon", 1e-5}};
    Random random(seed);
    const auto add = [&](const std::string& name, std::vector<std::int64_t> shape, float factor,
                         float mean = 0) {
        std::int64_t count = 1;
        for (const std::int64_t extent : shape) count *= extent;
        FileTensor tensor{std::move(shape), std::vector<float>(static_cast<std::size_t>(count))};
        for (float& value : tensor.values) value = mean + factor * random.normal();
        files.tensors[name] = std::move(tensor);
    };
    const auto add_norm = [&](const std::string& name) {
        add(name + ".weight", {WIDTH}, 0.3f, 1);
        add(name + ".bias", {WIDTH}, 0.3f);
    };
    const auto add_linear = [&](const std::string& name, std::int64_t in, std::int64_t out) {
        add(name + ".weight", {in, out}, 0.25f);
        add(name + ".bias", {out}, 0.3f);
    };
    add("wte.weight", {WORDS, WIDTH}, 0.5f);
    add("wpe.weight", {CONTEXT, WIDTH}, 0.5f);
    for (std::int64_t n = 0; n < LAYERS; ++n) {
        const std::string layer = "h." + std::to_string(n) + ".";
        add_norm(layer + "ln_1");
        add_linear(layer + "attn.c_attn", WIDTH, 3 * WIDTH);
        add_linear(layer + "attn.c_proj", WIDTH, WIDTH);
        add_norm(layer + "ln_2");
        add_linear(layer + "mlp.c_fc", WIDTH, INNER);
        add_linear(layer + "mlp.c_proj", INNER, WIDTH);
    }
    add_norm("ln_f");
    return files;
}

}  // namespace fa::testing
