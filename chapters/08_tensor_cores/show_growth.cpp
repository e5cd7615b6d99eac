#include <fmt/format.h>

#include <string>

#include "chapters/01_memory_accounting/naive_attention.h"
#include "chapters/07_gpt2_124m/gpt2_model.h"
#include "chapters/08_tensor_cores/experiments.h"
#include "chapters/08_tensor_cores/growth.h"
#include "common/attention_data.h"
#include "common/text_table.h"
#include "common/token_shard.h"

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
Growth of_network(const TensorCoreOptions& options) {
    const Gpt2 model = read_gpt2(options.model);
    const std::int64_t count = options.sequences * options.context;
    const auto tokens = options.tokens.extension() == ".bin"
                            ? read_token_shard(options.tokens, count)
                            : read_bytes_as_tokens(options.tokens, count);
    if (static_cast<std::int64_t>(tokens.size()) < count)
        throw UsageError(fmt::format("--tokens: {} hold {} tokens, {} x {} are wanted",
                                     options.tokens.filename().string(), tokens.size(),
                                     options.sequences, options.context));
    Growth growth;
    Forward forward(model,
                    {.attention = &CPU_NAIVE,
                     .activations = DType::bf16,
                     .observer = [&](std::int64_t, const AttentionProblem& p,
                                     const AttentionTensors& t) { growth += growth_of(p, t); }},
                    options.sequences, options.context);
    forward.run(tokens, options.sequences);
    return growth;
}

}  // namespace

void show_growth(Program& program, const TensorCoreOptions& options) {
    print_heading("How often a maximum grows");
    const Growth random = of_random_inputs(options, program.seed);
    const Growth network = of_network(options);
    fmt::print(
        "{} keys, tiles of 64 from the diagonal to the first: by how much a row's maximum grows at "
        "a "
        "tile after\nits first, base 2. Random: Q and K standard normal, d64. Network: {}, all "
        "layers "
        "and heads.\n\n",
        options.context, options.model.filename().string());
    TextTable table({"growth", "random", "network"});
    for (std::size_t n = 0; n < random.count.size(); ++n) {
        const auto share = [&](const Growth& g) {
            return fmt::format("{:.3f} %", 100.0 * static_cast<double>(g.count[n]) /
                                               static_cast<double>(g.pairs - g.rows));
        };
        table.add({Growth::range(n), share(random), share(network)});
        program.results.extras["growth"].push_back({{"growth", Growth::range(n)},
                                                    {"random", random.count[n]},
                                                    {"network", network.count[n]}});
    }
    table.rule();
    const auto line = [&](const std::string& name, const std::string& key, auto part, auto whole) {
        const auto share = [&](const Growth& g) {
            return static_cast<double>(part(g)) / static_cast<double>(whole(g));
        };
        table.add({name, fmt::format("{:.3f} %", 100 * share(random)),
                   fmt::format("{:.3f} %", 100 * share(network))});
        program.results.extras[key] = {{"random", share(random)}, {"network", share(network)}};
    };
    const auto pairs = [](const Growth& g) { return g.pairs; };
    line(
        "rescaled: at any growth", "classic_rescales",
        [](const Growth& g) { return g.classic_rescales; }, pairs);
    line(
        "rescaled: lazily", "lazy_rescales", [](const Growth& g) { return g.lazy_rescales; },
        pairs);
    line(
        "a warp of 32 rows rescales", "warp_rescales",
        [](const Growth& g) { return g.warp_rescales; },
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
