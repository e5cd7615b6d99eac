/// @file
/// ch07_gpt2_124m: the loss of a GPT-2 with each attention of the course inside it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "chapters/07_gpt2_124m/attention_statistics.h"
#include "chapters/07_gpt2_124m/lab_sheet.h"
#include "chapters/07_gpt2_124m/matrix_rate.h"
#include "chapters/07_gpt2_124m/report.h"
#include "chapters/07_gpt2_124m/setup.h"
#include "chapters/implementations.h"
#include "common/program.h"
#include "common/progress.h"

namespace {

using namespace fa;

/// What the program finds out.
struct Findings {
    std::vector<Run> runs;
    nlohmann::ordered_json outside = nlohmann::ordered_json::array();  ///< attention: what it took
    std::vector<double> largest;  ///< score of each layer; empty if not asked for
    std::vector<SummationRow> summations;

    const Run& baseline() const { return *baseline_of(runs, DType::f32); }
    /// The attention with which things besides the losses are looked at, on the CPU.
    const Implementation& looked_at() const {
        return baseline().implementation->device == Device::cpu ? *baseline().implementation
                                                                : implementation_named("cpu_fast");
    }
    double fp32_loss() const { return baseline().evaluation.loss; }
};

/// Runs each attention in each type of activations, and prints a table for each type.
void run_all(const Setup& setup, std::uint64_t seed, Findings& findings) {
    const Experiment& experiment = setup.experiment;
    for (const DType type : setup.activations) {
        std::optional<Gpt2> rounded;
        if (type != DType::f32) round_weights(rounded.emplace(setup.model).weights, type);
        const Gpt2& model = rounded ? *rounded : setup.model;
        for (const Implementation* implementation : setup.implementations) {
            Progress progress(fmt::format("{}, {}", implementation->name, name_of(type)),
                              experiment.plan.sequences());
            findings.runs.push_back(experiment.run(
                model, *implementation, type, [&](std::int64_t done) { progress.advance(done); }));
        }
        if (!baseline_of(findings.runs, DType::f32))
            throw Unsupported(
                fmt::format("no attention runs: {}", findings.runs.front().unsupported));
        print_losses(findings.runs, experiment, type, findings.fp32_loss());
        // On the CPU products are in fp32 whatever the type, and what a type adds is rounding.
        const Run* const run = baseline_of(findings.runs, type);
        if (run && (type == DType::f32 || run->implementation->device == Device::cuda)) {
            const OutsideAttention outside =
                outside_attention(model, experiment.plan, *run, experiment.threads, seed);
            print_outside_attention(outside);
            findings.outside.push_back(to_json(outside));
        }
    }
}

/// The largest scores over the first `sequences` sequences.
void measure_scores(const Setup& setup, std::int64_t sequences, Findings& findings) {
    const Experiment& experiment = setup.experiment;
    EvaluationPlan plan = experiment.plan;
    plan.count = std::min(plan.count, std::min(sequences, plan.sequences()) * plan.context);
    {
        Progress progress("largest scores", plan.sequences());
        findings.largest = largest_scores(
            setup.model, experiment.options(findings.looked_at(), DType::f32), experiment.tokens,
            plan, [&](std::int64_t done) { progress.advance(done); });
    }
    print_largest_scores(findings.largest, plan.sequences());
}

void check_all(const Setup& setup, const Findings& findings, Checks& checks) {
    const EvaluationPlan& plan = setup.experiment.plan;
    const double growth = score_growth(setup.model.config);
    const std::optional<double> bound = sixteen_bit_bound(plan, setup.model.config);
    check_losses_are_finite(findings.runs, checks);
    check_fp32_losses(findings.runs, plan, growth, setup.reference, checks);
    check_16_bit_losses(findings.runs, bound, checks);
    check_bf16_scores(findings.runs, plan, bound, findings.largest, setup.reference, checks);
    if (growth > 1)
        fmt::print(
            "\nThe network does not divide its scores by the root of d: bounds on fp32 losses are "
            "{:.3g} times\nas wide, and none is known for 16-bit losses.\n",
            growth);
    check_continuations(findings.runs, setup.expected_continuation, checks);
    for (const SummationRow& row : findings.summations)
        checks.at_most(fmt::format("log-sum-exp in blocks, {}: error", row.logits),
                       std::abs(row.blocks_fp32), SUMMATION_BOUND);
}

void write_all(const Setup& setup, const Findings& findings, Results& results) {
    for (const Run& run : findings.runs)
        results.rows.push_back(json_row(run, setup.experiment, findings.baseline()));
    const Gpt2Config& config = setup.model.config;
    auto& extras = results.extras;
    extras["model"] = {{"name", setup.model_name},        {"tokens", setup.tokens_name},
                       {"layers", config.layers},         {"heads", config.heads},
                       {"width", config.width},           {"context", config.context},
                       {"vocabulary", config.vocabulary}, {"parameters", config.parameters()}};
    extras["outside_attention"] = findings.outside;
    extras["largest_scores"] = findings.largest;
    for (const SummationRow& row : findings.summations)
        extras["summation"].push_back({{"logits", row.logits},
                                       {"log_sum_exp", row.log_sum},
                                       {"running_fp32_error", row.running_fp32},
                                       {"lanes_fp32_error", row.lanes_fp32},
                                       {"blocks_fp32_error", row.blocks_fp32}});
    if (setup.tokenizer && !findings.baseline().continuation.empty())
        extras["continuation"] = {
            {"prompt", setup.prompt},
            {"text", setup.tokenizer->decode(findings.baseline().continuation)}};
}

void run(Program& program, const Flags& flags) {
    const Setup setup = prepare(flags, program.where(), program.seed, FA_TINY_GPT);
    const Experiment& experiment = setup.experiment;
    print_heading("GPT-2 with exchangeable attention");
    print_setting(setup.model_name, setup.model.config, setup.tokens_name, experiment);

    Findings findings;
    run_all(setup, program.seed, findings);
    const Run& baseline = findings.baseline();
    if (flags.stats > 0) measure_scores(setup, flags.stats, findings);
    findings.summations =
        compare_summations(setup.model, experiment, findings.looked_at(), program.seed);
    print_summations(findings.summations);
    if (setup.tokenizer && !baseline.continuation.empty())
        print_continuation(setup.prompt, baseline, *setup.tokenizer);
    else if (!experiment.prompt.empty() && !std::isfinite(findings.fp32_loss()))
        fmt::print("\nNo text is continued: the loss is not a finite number.\n");

    check_all(setup, findings, program.checks);
    write_all(setup, findings, program.results);
}

}  // namespace

int main(int argc, char** argv) {
    fa::Program program("ch07_gpt2_124m", "The loss of a GPT-2 with each attention of the course");
    fa::Flags flags;
    flags.add_to(program.flags());
    return program.run(argc, argv, [&] { run(program, flags); });
}
