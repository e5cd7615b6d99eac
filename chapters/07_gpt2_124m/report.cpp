#include "chapters/07_gpt2_124m/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "chapters/07_gpt2_124m/amdahl.h"
#include "chapters/07_gpt2_124m/attention_statistics.h"
#include "chapters/07_gpt2_124m/cross_entropy.h"
#include "chapters/07_gpt2_124m/layers.h"
#include "chapters/07_gpt2_124m/summation.h"
#include "common/printable.h"
#include "common/program.h"
#include "common/text_table.h"

namespace fa {
namespace {

std::string percent(double share) {
    return fmt::format("{:.1f} %", 100 * share);
}
std::string times(double factor) {
    return fmt::format("{:.2f}x", factor);
}

SummationRow mean_errors(std::string name, const std::vector<LogSums>& sums) {
    SummationRow row{.logits = std::move(name)};
    const double weight = 1.0 / static_cast<double>(sums.size());
    for (const LogSums& of : sums) {
        row.log_sum += weight * of.fp64;
        row.running_fp32 += weight * (of.running_fp32 - of.fp64);
        row.lanes_fp32 += weight * (of.lanes_fp32 - of.fp64);
        row.blocks_fp32 += weight * (of.blocks_fp32 - of.fp64);
    }
    return row;
}

}  // namespace

void print_setting(const std::string& model_name, const Gpt2Config& config,
                   const std::string& tokens_name, const Experiment& experiment) {
    const EvaluationPlan& plan = experiment.plan;
    const auto floats = [](std::int64_t count) {
        return human_bytes(4 * static_cast<double>(count));
    };
    const std::int64_t rows = plan.most_sequences() * plan.longest();
    fmt::print("Network  {}: {} layers, {} heads of {}, width {}, context {}, vocabulary {}\n",
               model_name, config.layers, config.heads, config.head_dim(), config.width,
               config.context, config.vocabulary);
    fmt::print("         {} parameters, {} in fp32\n",
               human_count(static_cast<double>(config.parameters())), floats(config.parameters()));
    fmt::print("Tokens   {}: {} targets in {} sequences of {}, {} at a time\n", tokens_name,
               plan.count, plan.sequences(), plan.longest(), plan.batch);
    fmt::print("Memory   activations of a pass {}; all logits at once would be {}\n",
               floats(rows * (5 * config.width + config.inner)),
               floats(plan.count * config.vocabulary));
}

void print_losses(const std::vector<Run>& runs, const Experiment& experiment, DType activations,
                  double fp32_loss) {
    const EvaluationPlan& plan = experiment.plan;
    const int threads = Arithmetic{.threads = experiment.threads}.thread_count();
    const Run* const baseline = baseline_of(runs, activations);
    if (!baseline) return;
    print_heading(fmt::format("Loss and time measured, activations in {}", name_of(activations)));
    TextTable table({"attention", "loss", "- fp32 naive", "tokens/s", "seconds", "in attention",
                     "share", "attention", "whole by Amdahl", "whole"});
    for (const Run& run : runs) {
        if (run.activations != activations || !run.unsupported.empty()) continue;
        const Evaluation& e = run.evaluation;
        const double faster = baseline->evaluation.attention_seconds / e.attention_seconds;
        table.add({std::string(run.implementation->name), fmt::format("{:.6f}", e.loss),
                   fmt::format("{:+.1e}", e.loss - fp32_loss),
                   fmt::format("{:.0f}", run.tokens_per_second(plan)),
                   fmt::format("{:.2f}", e.seconds), fmt::format("{:.2f}", e.attention_seconds),
                   percent(run.attention_share()), times(faster),
                   times(amdahl_speedup(baseline->attention_share(), faster)),
                   times(baseline->evaluation.seconds / e.seconds)});
    }
    fmt::print("{}", table.str());
    for (const Run& run : runs)
        if (run.activations == activations && !run.unsupported.empty())
            fmt::print("{}: not run: {}\n", run.implementation->name, run.unsupported);
    const std::string name(baseline->implementation->name);
    fmt::print("{} threads. Last columns: how many times faster than {} attention is, the whole\n",
               threads, name);
    fmt::print("should be by Amdahl's law, and the whole is. {} of {}'s time is attention: one\n",
               percent(baseline->attention_share()), name);
    fmt::print("that took no time at all would make the whole {} faster.\n",
               times(amdahl_limit(baseline->attention_share())));
}

void print_outside_attention(const OutsideAttention& outside) {
    fmt::print(
        "\nOutside attention, predicted: {}FLOP of matrix products at {}FLOP/s, measured on\n",
        human_count(outside.flops), human_count(outside.flops_per_second));
    fmt::print("the widest layer, take {}. With {} it took {}: {} of that bound.\n",
               human_seconds(outside.predicted_seconds()), outside.run->implementation->name,
               human_seconds(outside.seconds), percent(outside.bound_share()));
}

void print_largest_scores(const std::vector<double>& largest, std::int64_t sequences) {
    print_heading("The largest scores, measured");
    TextTable table({"layer", "largest |score|", "step of bf16 there", "step of fp32"});
    for (std::size_t layer = 0; layer < largest.size(); ++layer) {
        const double step = bf16_step(largest[layer]);
        table.add({fmt::format("{}", layer), fmt::format("{:.1f}", largest[layer]),
                   fmt::format("{:g}", step), fmt::format("{:.1e}", step * 0x1p-16)});
    }
    fmt::print("{}Scaled scores that the mask leaves visible, over {} sequences, fp32.\n",
               table.str(), sequences);
}

std::vector<SummationRow> compare_summations(const Gpt2& model, const Experiment& experiment,
                                             const Implementation& implementation,
                                             std::uint64_t seed) {
    constexpr std::int64_t WORDS = 50257;  // GPT-2's vocabulary
    constexpr double EXPONENT = 1.75;      // probability of a word: rank^-1.75
    constexpr std::int64_t MOST_TOKENS = 256;
    std::vector<SummationRow> rows{
        mean_errors(fmt::format("made up, {} words", WORDS),
                    {log_sums(power_law_logits(WORDS, EXPONENT, seed))})};
    const Gpt2Config& config = model.config;
    if (config.vocabulary < LARGE_VOCABULARY) return rows;

    const std::int64_t count =
        std::min({MOST_TOKENS, experiment.plan.context, experiment.plan.count});
    Forward forward(model, experiment.options(implementation, DType::f32), 1, count);
    const std::span<const float> hidden =
        forward.run(std::span(experiment.tokens).first(static_cast<std::size_t>(count)));
    std::vector<float> of_token(static_cast<std::size_t>(config.vocabulary));
    std::vector<LogSums> sums;
    for (std::int64_t i = 0; i < count; ++i) {
        logits(model,
               hidden.subspan(static_cast<std::size_t>(i * config.width),
                              static_cast<std::size_t>(config.width)),
               {.threads = experiment.threads}, of_token);
        sums.push_back(log_sums(of_token));
    }
    rows.push_back(mean_errors(fmt::format("the network's, {} tokens", count), sums));
    return rows;
}

void print_summations(const std::vector<SummationRow>& rows) {
    print_heading("Errors of sums of exponentials, measured");
    TextTable table({"logits", "log-sum-exp", "one fp32 sum", "16 fp32 lanes", "blocks of 512"});
    for (const SummationRow& row : rows)
        table.add({row.logits, fmt::format("{:.6f}", row.log_sum),
                   fmt::format("{:+.1e}", row.running_fp32), fmt::format("{:+.1e}", row.lanes_fp32),
                   fmt::format("{:+.1e}", row.blocks_fp32)});
    fmt::print("{}Errors against a sum in fp64. This program's losses use the last way.\n",
               table.str());
}

void print_continuation(const std::string& prompt, const Run& run, const Tokenizer& tokenizer) {
    print_heading(fmt::format("Text continued, with {}", run.implementation->name));
    fmt::print("[{}]{}\n", printable_lines(prompt),
               printable_lines(tokenizer.decode(run.continuation)));
}

nlohmann::ordered_json json_row(const Run& run, const Experiment& experiment, const Run& baseline) {
    nlohmann::ordered_json row;
    row["implementation"] = run.implementation->name;
    row["device"] = name_of(run.implementation->device);
    row["dtype"] = name_of(run.activations);
    row["tokens"] = experiment.plan.count;
    row["context"] = experiment.plan.context;
    row["batch"] = experiment.plan.batch;
    row["threads"] = Arithmetic{.threads = experiment.threads}.thread_count();
    row["status"] = run.unsupported.empty() ? "ok" : "unsupported";
    if (!run.unsupported.empty()) {
        row["reason"] = run.unsupported;
        return row;
    }
    row["loss"] = run.evaluation.loss;
    row["loss_delta"] = run.evaluation.loss - baseline.evaluation.loss;
    row["tokens_per_s"] = run.tokens_per_second(experiment.plan);
    row["attention_share"] = run.attention_share();
    row["seconds"] = run.evaluation.seconds;
    row["attention_seconds"] = run.evaluation.attention_seconds;
    row["sequence_losses"] = run.evaluation.sequence_losses;
    return row;
}

}  // namespace fa
