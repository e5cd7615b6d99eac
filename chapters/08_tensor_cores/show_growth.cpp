#include <fmt/format.h>

#include <string>

#include "chapters/01_memory_accounting/naive_attention.h"
#include "chapters/07_gpt2_124m/model_text.h"
#include "chapters/08_tensor_cores/experiments.h"
#include "chapters/08_tensor_cores/growth.h"
#include "common/attention_data.h"
#include "common/text_table.h"

namespace fa {
namespace {

Growth of_random_inputs(const TensorCoreOptions& options, std::uint64_t seed) {
    AttentionProblem p = options.shape;
    p.batch = 1;
    p.heads_q = p.heads_kv = 4;
    p.head_dim = 64;
    p.len_q = p.len_kv = options.context;
    AttentionData<BFloat16> data(p, seed);
    return growth_of(p, data.tensors());
}

/// All layers and heads of a forward pass over a few sequences.
Growth of_network(const TensorCoreOptions& options, const NetworkText& network) {
    Growth growth;
    Forward forward(network.model,
                    {.attention = &CPU_NAIVE,
                     .activations = DType::bf16,
                     .observer = [&](std::int64_t, const AttentionProblem& p,
                                     const AttentionTensors& t) { growth += growth_of(p, t); }},
                    options.sequences, options.context);
    forward.run(network.tokens, options.sequences);
    return growth;
}

}  // namespace

NetworkText read_network(const TensorCoreOptions& options) {
    NetworkText network{
        .name = options.model.filename().string(), .model = read_gpt2(options.model), .tokens = {}};
    const Gpt2Config& config = network.model.config;
    if (options.context > config.context)
        throw UsageError(fmt::format("--context {}: the network's context is {}", options.context,
                                     config.context));
    const auto tokenizer = tokenizer_of(options.model, config);
    network.tokens =
        read_tokens(options.tokens, token_format_of(options.tokens), config, tokenizer.get());
    const auto count = static_cast<std::size_t>(options.sequences * options.context);
    if (network.tokens.size() < count)
        throw UsageError(fmt::format("--tokens: {} holds {} tokens, {} x {} are wanted",
                                     options.tokens.filename().string(), network.tokens.size(),
                                     options.sequences, options.context));
    network.tokens.resize(count);
    return network;
}

void show_growth(Program& program, const TensorCoreOptions& options, const NetworkText& text) {
    print_heading("How often a maximum grows, measured");
    const Growth random = of_random_inputs(options, program.seed);
    const Growth network = of_network(options, text);
    fmt::print(
        "{} keys, tiles of 64 from the diagonal to the first: by how much a row's maximum grows at "
        "a "
        "tile after\nits first, base 2. Random: Q and K standard normal, d64. Network: {}, all "
        "layers "
        "and heads.\n\n",
        options.context, text.name);
    TextTable table({"a row's maximum", "random", "network"});
    const auto add_line = [&](const std::string& name, auto share) {
        table.add({name, fmt::format("{:.3f} %", 100 * share(random)),
                   fmt::format("{:.3f} %", 100 * share(network))});
        program.results.extras["growth"].push_back({{"a row's maximum", name},
                                                    {"random, %", 100 * share(random)},
                                                    {"network, %", 100 * share(network)}});
    };
    for (std::size_t n = 0; n < random.count.size(); ++n) {
        const auto share = [&](const Growth& g) {
            return static_cast<double>(g.count[n]) / static_cast<double>(g.pairs - g.rows);
        };
        add_line("grows by " + Growth::range(n), share);
    }
    table.rule();
    const auto line = [&](const std::string& name, auto part, auto whole) {
        add_line(name, [&](const Growth& g) {
            return static_cast<double>(part(g)) / static_cast<double>(whole(g));
        });
    };
    const auto pairs = [](const Growth& g) { return g.pairs; };
    line(
        "is followed at any growth", [](const Growth& g) { return g.classic_rescales; }, pairs);
    line(
        "is followed lazily", [](const Growth& g) { return g.lazy_rescales; }, pairs);
    line(
        "is followed lazily, in a warp of 32 rows", [](const Growth& g) { return g.warp_rescales; },
        [](const Growth& g) { return g.warp_tiles; });
    fmt::print("{}", table.str());
    fmt::print(
        "\nThe last three lines count each row's first tile, where there is no way around.\n");
    program.checks.at_most(
        "random: lazy rescales over rescales at any growth",
        static_cast<double>(random.lazy_rescales) / static_cast<double>(random.classic_rescales),
        0.75);
    program.checks.at_most(
        "network: lazy rescales over rescales at any growth",
        static_cast<double>(network.lazy_rescales) / static_cast<double>(network.classic_rescales),
        1.0);
}

}  // namespace fa
