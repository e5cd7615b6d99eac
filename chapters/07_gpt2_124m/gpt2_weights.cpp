#include "chapters/07_gpt2_124m/gpt2_weights.h"

#include <fmt/format.h>

#include <set>
#include <stdexcept>
#include <string>

#include "chapters/07_gpt2_124m/rounding.h"
#include "common/printable.h"
#include "common/safetensors.h"

namespace fa {
namespace {

/// Reads tensors by their GPT-2 names and remembers which it has read.
class Reader {
  public:
    explicit Reader(const std::filesystem::path& path) : file_(path) {
        // Files saved from GPT2Model have bare names, those from GPT2LMHeadModel the prefix.
        if (file_.contains("transformer.wte.weight")) prefix_ = "transformer.";
    }

    std::vector<float> read(const std::string& name, std::vector<std::int64_t> shape) {
        return read_full_name(prefix_ + name, shape);
    }

    NormWeights norm(const std::string& name, std::int64_t width) {
        return {read(name + ".weight", {width}), read(name + ".bias", {width})};
    }

    LinearWeights linear(const std::string& name, std::int64_t in, std::int64_t out) {
        return {in, out, read(name + ".weight", {in, out}), read(name + ".bias", {out})};
    }

    /// The output layer never has the prefix.
    std::vector<float> head(const Gpt2Config& config, const std::vector<float>& token_embedding) {
        const std::string name = "lm_head.weight";
        if (config.tied_head && !file_.contains(name)) return {};
        std::vector<float> head = read_full_name(name, {config.vocabulary, config.width});
        if (!config.tied_head) return head;
        if (head != token_embedding)
            throw std::runtime_error(fmt::format(
                "{}: {} differs from {}wte.weight, but the config says that the head is "
                "tied (\"tie_word_embeddings\": false would use it)",
                file_.path().string(), name, prefix_));
        return {};
    }

    void ignore(const std::string& name) { known_.insert(prefix_ + name); }

    /// Refuses what has not been read: a file with more layers than the config would otherwise load
    /// and compute something else.
    void refuse_the_rest(const Gpt2Config& config) const {
        for (const StoredTensor& tensor : file_.tensors())
            if (!known_.contains(tensor.name))
                throw std::runtime_error(
                    fmt::format("{}: tensor {} belongs to no GPT-2 of {} layers",
                                file_.path().string(), printable(tensor.name), config.layers));
    }

  private:
    std::vector<float> read_full_name(const std::string& name,
                                      const std::vector<std::int64_t>& shape) {
        known_.insert(name);
        return file_.read_f32(name, shape);
    }

    SafetensorsFile file_;
    std::string prefix_;
    std::set<std::string> known_;
};

template <class Function>
void for_each_tensor(Gpt2Weights& weights, const Function& function) {
    const auto norm = [&](NormWeights& n) { function(n.gain), function(n.bias); };
    const auto linear = [&](LinearWeights& l) { function(l.weight), function(l.bias); };
    function(weights.token_embedding);
    function(weights.position_embedding);
    for (BlockWeights& block : weights.blocks) {
        norm(block.norm_1), linear(block.qkv), linear(block.projection);
        norm(block.norm_2), linear(block.expand), linear(block.contract);
    }
    norm(weights.final_norm);
    function(weights.own_head);
}

}  // namespace

Gpt2Weights read_gpt2_weights(const std::filesystem::path& path, const Gpt2Config& config) {
    Reader reader(path);
    const std::int64_t width = config.width;
    Gpt2Weights weights;
    weights.token_embedding = reader.read("wte.weight", {config.vocabulary, width});
    weights.position_embedding = reader.read("wpe.weight", {config.context, width});
    for (std::int64_t n = 0; n < config.layers; ++n) {
        const std::string layer = fmt::format("h.{}.", n);
        weights.blocks.push_back({
            .norm_1 = reader.norm(layer + "ln_1", width),
            .qkv = reader.linear(layer + "attn.c_attn", width, 3 * width),
            .projection = reader.linear(layer + "attn.c_proj", width, width),
            .norm_2 = reader.norm(layer + "ln_2", width),
            .expand = reader.linear(layer + "mlp.c_fc", width, config.inner),
            .contract = reader.linear(layer + "mlp.c_proj", config.inner, width),
        });
        reader.ignore(layer + "attn.bias");
        reader.ignore(layer + "attn.masked_bias");
    }
    weights.final_norm = reader.norm("ln_f", width);
    weights.own_head = reader.head(config, weights.token_embedding);
    reader.refuse_the_rest(config);
    return weights;
}

void round_weights(Gpt2Weights& weights, DType dtype) {
    for_each_tensor(weights, [&](std::vector<float>& values) { round_to(dtype, values); });
}

}  // namespace fa
