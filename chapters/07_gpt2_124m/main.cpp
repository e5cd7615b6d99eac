/// @file
/// ch07_gpt2_124m: the loss of a GPT-2 with each attention of the course inside it.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "chapters/07_gpt2_124m/attention_statistics.h"
#include "chapters/07_gpt2_124m/lab_sheet.h"
#include "chapters/07_gpt2_124m/matrix_rate.h"
#include "chapters/07_gpt2_124m/model_text.h"
#include "chapters/07_gpt2_124m/report.h"
#include "chapters/implementations.h"
#include "common/program.h"
#include "common/progress.h"

namespace {

using namespace fa;
namespace fs = std::filesystem;

/// The model that comes with the chapter.
const fs::path TINY_GPT = FA_TINY_GPT;

/// What the flags say, before anything is read.
struct Flags {
    fs::path model, tokens, reference;
    std::int64_t count = 0, context = 0, batch = 4, stats = 16, generate = 64;
    int threads = 0;
    std::string implementations, activations, prompt;
    Sampling sampling;

    void add_to(CLI::App& app) {
        app.add_option(
               "--model", model,
               "folder with config.json, model.safetensors and, unless tokens are bytes, the "
               "tokenizer's files")
            ->default_str("the chapter's tiny_gpt");
        app.add_option("--tokens", tokens, "what to evaluate: a shard of token ids (*.bin) or text")
            ->default_str("what reference.json in the model's folder names");
        app.add_option("--reference", reference,
                       "losses of another implementation to check against")
            ->default_str("reference.json in the model's folder, if it is for these tokens");
        app.add_option("--count", count, "targets to evaluate; 0: all, at most 65536")
            ->check(CLI::NonNegativeNumber);
        app.add_option("--context", context, "tokens of a sequence; 0: the network's context")
            ->check(CLI::NonNegativeNumber);
        app.add_option("--batch", batch, "sequences that go through the network together")
            ->check(CLI::Range(1, 4096));
        app.add_option("--threads", threads, "0: as many as OpenMP offers")
            ->check(CLI::Range(0, 4096));
        app.add_option("--implementations", implementations,
                       "attentions to run, by name, separated by commas")
            ->default_str("all that run on the device");
        app.add_option(
               "--activations", activations,
               "fp32, bf16 or fp16, or several, separated by commas: the type of everything "
               "that the network computes and of its weights")
            ->default_str("fp32, and bf16 for the chapter's model");
        app.add_option("--prompt", prompt, "text to continue; empty: none")
            ->default_str("that of reference.json, if there is one");
        app.add_option("--generate", generate, "tokens to continue it by")
            ->check(CLI::NonNegativeNumber);
        app.add_option("--temperature", sampling.temperature,
                       "of the choice of tokens; 0: always the likeliest")
            ->check(CLI::Range(0.0, 100.0));
        app.add_option("--top-k", sampling.top_k, "choose among this many tokens; 0: among all")
            ->check(CLI::NonNegativeNumber);
        app.add_option("--stats", stats,
                       "sequences over which the largest scores are taken; 0: leave that out")
            ->check(CLI::NonNegativeNumber);
    }
};

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> pieces;
    std::istringstream stream(text);
    for (std::string piece; std::getline(stream, piece, ',');) pieces.push_back(piece);
    return pieces;
}

std::vector<const Implementation*> chosen_implementations(const std::string& names, Device device) {
    std::vector<const Implementation*> chosen;
    if (names.empty())
        for (const Implementation& implementation : all_implementations())
            if (implementation.device == device) chosen.push_back(&implementation);
    for (const std::string& name : split(names)) {
        try {
            chosen.push_back(&implementation_named(name));
        } catch (const std::invalid_argument& error) {
            throw UsageError(fmt::format("--implementations: {}", error.what()));
        }
        if (chosen.back()->device != device)
            throw UsageError(fmt::format("--implementations: {} does not run on device {}", name,
                                         name_of(device)));
    }
    return chosen;
}

/// fp32 first: the others are compared with it.
std::vector<DType> chosen_activations(const std::string& names, bool default_model) {
    if (names.empty() && default_model) return {DType::f32, DType::bf16};
    std::vector<DType> chosen{DType::f32};
    for (const std::string& name : split(names)) {
        const std::optional<DType> dtype = dtype_from_name(name);
        if (!dtype)
            throw UsageError(
                fmt::format("--activations: \"{}\" is none of fp32, bf16, fp16", name));
        if (std::find(chosen.begin(), chosen.end(), *dtype) == chosen.end())
            chosen.push_back(*dtype);
    }
    return chosen;
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
    if (static_cast<std::int64_t>(tokens.size()) + flags.generate > config.context)
        throw UsageError(
            fmt::format("--prompt of {} tokens and --generate {} do not fit the "
                        "network's context of {}",
                        tokens.size(), flags.generate, config.context));
    return tokens;
}

void run(Program& program, Flags flags) {
    const std::vector<const Implementation*> implementations =
        chosen_implementations(flags.implementations, program.where());
    const bool default_model = flags.model.empty();
    if (default_model) flags.model = TINY_GPT;
    const Gpt2 model = read_gpt2(flags.model);
    const std::vector<DType> types = chosen_activations(flags.activations, default_model);

    // What there is to compare with, and to read.
    std::optional<ReferenceLosses> beside = reference_beside(flags.model);
    if (flags.tokens.empty()) {
        if (!beside || beside->tokens_file.empty())
            throw UsageError(
                "--tokens is needed: the model's folder does not say what to evaluate");
        flags.tokens = flags.model / beside->tokens_file;
    }
    std::optional<ReferenceLosses> reference;
    if (!flags.reference.empty())
        reference = read_reference_losses(flags.reference);
    else if (beside && flags.tokens == flags.model / beside->tokens_file)
        reference = beside;
    const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(flags.model, model.config);
    std::string prompt = flags.prompt;
    if (prompt.empty() && reference) prompt = reference->prompt;

    Experiment experiment;
    experiment.tokens = read_tokens(flags.tokens, model.config, tokenizer.get());
    experiment.plan = plan_for(flags, model.config, experiment.tokens.size());
    experiment.threads = flags.threads;
    experiment.prompt = encode_prompt(flags, prompt, tokenizer.get(), model.config);
    experiment.generate_count = flags.generate;
    experiment.sampling = flags.sampling;
    experiment.sampling.seed = program.seed;

    const std::string model_name =
        default_model ? "tiny_gpt" : fs::weakly_canonical(flags.model).filename().string();
    print_heading("GPT-2 with exchangeable attention");
    print_setting(model_name, model.config, flags.tokens.filename().string(), experiment);

    std::vector<Run> runs;
    for (const DType type : types) {
        std::optional<Gpt2> rounded;
        if (type != DType::f32) round_weights(rounded.emplace(model).weights, type);
        for (const Implementation* implementation : implementations) {
            Progress progress(fmt::format("{}, {}", implementation->name, name_of(type)),
                              experiment.plan.sequences());
            runs.push_back(experiment.run(rounded ? *rounded : model, *implementation, type,
                                          [&](std::int64_t done) { progress.advance(done); }));
        }
        const Run* const fp32 = baseline_of(runs, DType::f32);
        if (!fp32)
            throw Unsupported(fmt::format("no attention runs: {}", runs.front().unsupported));
        print_losses(runs, experiment.plan, type, fp32->evaluation.loss);
    }
    const Run& baseline = *baseline_of(runs, DType::f32);
    const double fp32_loss = baseline.evaluation.loss;

    // What is looked at besides the losses is computed on the CPU.
    const Implementation& looked_at = baseline.implementation->device == Device::cpu
                                          ? *baseline.implementation
                                          : implementation_named("cpu_fast");
    const double rate = measure_matrix_rate(model, {.threads = experiment.threads}, program.seed);
    print_matrix_time(model.config, experiment.plan, baseline, rate);

    std::vector<double> largest;
    if (flags.stats > 0) {
        EvaluationPlan plan = experiment.plan;
        plan.count = std::min(plan.count, flags.stats * plan.context);
        Progress progress("largest scores", plan.sequences());
        largest =
            largest_scores(model, experiment.options(looked_at, DType::f32), experiment.tokens,
                           plan, [&](std::int64_t done) { progress.advance(done); });
        print_largest_scores(largest, plan.sequences());
    }
    const std::vector<SummationRow> summations =
        compare_summations(model, experiment, looked_at, program.seed);
    print_summations(summations);
    if (tokenizer && !baseline.continuation.empty())
        print_continuation(prompt, baseline, *tokenizer);

    Checks& checks = program.checks;
    check_fp32_losses(runs, experiment.plan, reference, checks);
    check_16_bit_losses(runs, fp32_loss, checks);
    check_bf16_scores(runs, fp32_loss, largest, checks);
    const bool same_prompt =
        reference && prompt == reference->prompt && flags.sampling.temperature == 0;
    check_continuations(runs, same_prompt ? reference->continuation : std::vector<std::int32_t>{},
                        checks);
    for (const SummationRow& row : summations)
        checks.at_most(fmt::format("log-sum-exp in blocks, {}: error", row.logits),
                       std::abs(row.blocks_fp32), 1e-6);

    for (const Run& of : runs)
        program.results.rows.push_back(
            json_row(of, experiment, *baseline_of(runs, of.activations)));
    auto& extras = program.results.extras;
    extras["model"] = {{"name", model_name},
                       {"layers", model.config.layers},
                       {"heads", model.config.heads},
                       {"width", model.config.width},
                       {"context", model.config.context},
                       {"vocabulary", model.config.vocabulary},
                       {"parameters", model.config.parameters()}};
    extras["matrix_flops_per_s"] = rate;
    extras["largest_scores"] = largest;
    for (const SummationRow& row : summations)
        extras["summation"].push_back({{"logits", row.logits},
                                       {"log_sum_exp", row.log_sum},
                                       {"running_fp32_error", row.running_fp32},
                                       {"lanes_fp32_error", row.lanes_fp32},
                                       {"blocks_fp32_error", row.blocks_fp32}});
    if (tokenizer && !baseline.continuation.empty())
        extras["continuation"] = {{"prompt", prompt},
                                  {"text", tokenizer->decode(baseline.continuation)}};
}

}  // namespace

int main(int argc, char** argv) {
    fa::Program program("ch07_gpt2_124m", "The loss of a GPT-2 with each attention of the course");
    Flags flags;
    flags.add_to(program.flags());
    return program.run(argc, argv, [&] { run(program, flags); });
}
