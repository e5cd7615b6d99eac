#include "chapters/07_gpt2_124m/setup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "chapters/07_gpt2_124m/model_text.h"
#include "chapters/implementations.h"
#include "common/program.h"

namespace fa {
namespace {

namespace fs = std::filesystem;

/// The tokens' name in the folder that scripts/fetch_gpt2.sh fills.
constexpr const char* FETCHED_TOKENS = "val_tokens.bin";

/// The names of a list, none if it is empty. @throws UsageError if one is empty or comes twice
std::vector<std::string> names_in(const std::string& flag, std::string_view text) {
    std::vector<std::string> names;
    if (text.empty()) return names;
    for (const std::string& name : split_at_commas(text)) {
        if (name.empty()) throw UsageError(fmt::format("{}: a name is empty", flag));
        if (std::ranges::find(names, name) != names.end())
            throw UsageError(fmt::format("{}: {} is named twice", flag, name));
        names.push_back(name);
    }
    return names;
}

std::vector<const Implementation*> chosen_implementations(const std::string& names, Device device) {
    std::vector<const Implementation*> here, chosen;
    for (const Implementation& implementation : all_implementations())
        if (implementation.device == device) here.push_back(&implementation);
    if (names.empty()) return here;
    for (const std::string& name : names_in("--implementations", names)) {
        const auto found = std::ranges::find(here, name, &Implementation::name);
        if (found == here.end()) {
            std::vector<std::string_view> known;
            for (const Implementation* implementation : here) known.push_back(implementation->name);
            throw UsageError(fmt::format(
                "--implementations: none that runs on device {} is called \"{}\"; there are: {}",
                name_of(device), name, fmt::join(known, ", ")));
        }
        chosen.push_back(*found);
    }
    return chosen;
}

std::vector<DType> chosen_activations(const std::string& names, bool default_model) {
    if (names.empty() && default_model) return {DType::f32, DType::bf16};
    std::vector<DType> chosen{DType::f32};
    for (const std::string& name : names_in("--activations", names)) {
        const std::optional<DType> dtype = dtype_from_name(name);
        if (!dtype)
            throw UsageError(
                fmt::format("--activations: \"{}\" is none of fp32, bf16, fp16", name));
        if (std::find(chosen.begin(), chosen.end(), *dtype) == chosen.end())
            chosen.push_back(*dtype);
    }
    return chosen;
}

/// The last part of a path, also of "folder/" and ".".
std::string name_of_folder(const fs::path& folder) {
    const fs::path path = fs::absolute(folder).lexically_normal();
    return (path.has_filename() ? path : path.parent_path()).filename().string();
}

/// reference.json of the model's folder, if it is there.
std::optional<ReferenceLosses> reference_beside(const fs::path& model) {
    const fs::path path = model / "reference.json";
    if (!fs::exists(path)) return std::nullopt;
    return read_reference_losses(path);
}

EvaluationPlan plan_for(const Flags& flags, const Gpt2Config& config, std::size_t tokens) {
    constexpr std::int64_t MOST = 65536;
    const auto available = static_cast<std::int64_t>(tokens) - 1;
    if (flags.context > config.context)
        throw UsageError(fmt::format("--context {}: the network's context is {}", flags.context,
                                     config.context));
    if (available < 1) throw UsageError("--tokens: one token leaves nothing to predict");
    if (flags.count > available)
        throw UsageError(fmt::format("--count {}: the {} tokens have {} targets", flags.count,
                                     tokens, available));
    return {.count = flags.count > 0 ? flags.count : std::min(available, MOST),
            .context = flags.context > 0 ? flags.context : config.context,
            .batch = flags.batch};
}

std::vector<std::int32_t> encode_prompt(const Flags& flags, const std::string& prompt,
                                        const Tokenizer* tokenizer, const Gpt2Config& config) {
    if (prompt.empty() || flags.generate == 0) return {};
    if (!tokenizer) {
        if (flags.prompt.empty()) return {};
        throw UsageError("--prompt: no tokenizer lies beside the model");
    }
    std::vector<std::int32_t> tokens = tokenizer->encode(prompt);
    if (flags.generate > config.context - static_cast<std::int64_t>(tokens.size()))
        throw UsageError(
            fmt::format("{} of {} tokens and --generate {} do not fit the network's context of {}",
                        flags.prompt.empty() ? "the reference's prompt" : "--prompt", tokens.size(),
                        flags.generate, config.context));
    return tokens;
}

TokenFormat chosen_token_format(const Flags& flags) {
    if (flags.token_format.empty()) return token_format_of(flags.tokens);
    if (flags.token_format == "shard") return TokenFormat::shard;
    if (flags.token_format == "text") return TokenFormat::text;
    throw UsageError(
        fmt::format("--token-format: \"{}\" is neither shard nor text", flags.token_format));
}

/// What to evaluate, if no flag says so: what reference.json names, or what scripts/fetch_gpt2.sh
/// fetched.
fs::path default_tokens(const fs::path& model, const std::optional<ReferenceLosses>& beside) {
    if (beside && !beside->tokens_file.empty()) return model / beside->tokens_file;
    if (fs::exists(model / FETCHED_TOKENS)) return model / FETCHED_TOKENS;
    throw UsageError("--tokens is needed: the model's folder does not say what to evaluate");
}

}  // namespace

void Flags::add_to(CLI::App& app) {
    app.add_option("--model", model,
                   "folder with config.json, model.safetensors and, unless tokens are bytes, the "
                   "tokenizer's files")
        ->default_str("the chapter's tiny_gpt");
    app.add_option("--tokens", tokens, "what to evaluate: a shard of token ids, or text")
        ->default_str("the file named in the model folder's reference.json, or its val_tokens.bin");
    app.add_option("--token-format", token_format,
                   "shard or text; text of a network whose tokens are bytes is any file")
        ->default_str("shard for *.bin, text for all else");
    app.add_option("--reference", reference, "losses of another implementation to check against")
        ->default_str("reference.json in the model's folder, if it is for these tokens");
    app.add_option("--count", count, "targets to evaluate; 0: all, at most 65536")
        ->check(at_least(0));
    app.add_option("--context", context, "tokens of a sequence; 0: the network's context")
        ->check(at_least(0));
    app.add_option("--batch", batch, "sequences that go through the network together")
        ->check(between(1, 4096));
    app.add_option("--threads", threads, "0: as many as OpenMP offers")->check(between(0, 4096));
    app.add_option("--implementations", implementations,
                   "attentions to run, by name, separated by commas")
        ->default_str("all that run on the device");
    app.add_option("--activations", activations,
                   "fp32, bf16 or fp16, or several, separated by commas: the type of everything "
                   "that the network computes and of its weights")
        ->default_str("fp32, and bf16 for the chapter's model");
    app.add_option("--prompt", prompt, "text to continue; empty: none")
        ->default_str("that of reference.json, if there is one");
    app.add_option("--generate", generate, "tokens to continue it by")->check(at_least(0));
    app.add_option("--temperature", sampling.temperature,
                   "of the choice of tokens; 0: always the likeliest")
        ->check(between(0, 100));
    app.add_option("--top-k", sampling.top_k, "choose among this many tokens; 0: among all")
        ->check(at_least(0));
    app.add_option("--stats", stats,
                   "sequences over which the largest scores are taken; 0: leave that out")
        ->check(at_least(0));
}

Setup prepare(Flags flags, Device device, std::uint64_t seed, const fs::path& default_model) {
    Setup setup;
    const bool is_default = flags.model.empty();
    if (is_default) flags.model = default_model;
    setup.implementations = chosen_implementations(flags.implementations, device);
    setup.activations = chosen_activations(flags.activations, is_default);
    setup.model = read_gpt2(flags.model);
    const Gpt2Config& config = setup.model.config;
    setup.model_name = name_of_folder(flags.model);

    std::optional<ReferenceLosses> beside = reference_beside(flags.model);
    if (flags.tokens.empty()) flags.tokens = default_tokens(flags.model, beside);
    setup.tokens_name = flags.tokens.filename().string();
    if (!flags.reference.empty())
        setup.reference = read_reference_losses(flags.reference);
    else if (beside && flags.tokens == flags.model / beside->tokens_file)
        setup.reference = std::move(beside);

    setup.tokenizer = tokenizer_of(flags.model, config);
    setup.prompt = flags.prompt;
    if (setup.prompt.empty() && setup.reference) setup.prompt = setup.reference->prompt;
    if (setup.reference && setup.prompt == setup.reference->prompt &&
        flags.sampling.temperature == 0)
        setup.expected_continuation = setup.reference->continuation;

    Experiment& experiment = setup.experiment;
    experiment.tokens =
        read_tokens(flags.tokens, chosen_token_format(flags), config, setup.tokenizer.get());
    experiment.plan = plan_for(flags, config, experiment.tokens.size());
    experiment.threads = flags.threads;
    experiment.prompt = encode_prompt(flags, setup.prompt, setup.tokenizer.get(), config);
    experiment.generate_count = flags.generate;
    experiment.sampling = flags.sampling;
    experiment.sampling.seed = seed;
    return setup;
}

}  // namespace fa
