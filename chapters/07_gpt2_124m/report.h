#pragma once
/// @file
/// What the program prints, and the rows it writes.

#include <cstdint>
#include <string>
#include <vector>

#include "chapters/07_gpt2_124m/experiment.h"
#include "chapters/07_gpt2_124m/gpt2_model.h"
#include "chapters/07_gpt2_124m/matrix_rate.h"
#include "common/results.h"
#include "common/tokenizer.h"

namespace fa {

/// The network, the tokens, and the memory that one pass takes.
void print_setting(const std::string& model_name, const Gpt2Config& config,
                   const std::string& tokens_name, const Experiment& experiment);

/// The loss of each attention, how long it took, and what Amdahl's law makes of that.
/// @param fp32_loss what differences are taken from
void print_losses(const std::vector<Run>& runs, const Experiment& experiment, DType activations,
                  double fp32_loss);

/// What is not attention: the matrix products, predicted from the measured rate, and measured.
void print_outside_attention(const OutsideAttention& outside);

/// The largest score of each layer, and how far apart bf16 numbers are there.
void print_largest_scores(const std::vector<double>& largest, std::int64_t sequences);

/// One vocabulary's exponentials, summed four ways: mean errors against fp64.
struct SummationRow {
    std::string logits;       ///< whose
    double log_sum = 0;       ///< in fp64
    double running_fp32 = 0;  ///< error of one fp32 sum
    double lanes_fp32 = 0;    ///< error of 16 fp32 sums side by side
    double blocks_fp32 = 0;   ///< error of fp32 blocks added in fp64
};

/// A vocabulary of so many words is worth a look of its own.
constexpr std::int64_t LARGE_VOCABULARY = 10000;

/// The sums of a made-up vocabulary of GPT-2's size and, if the network's own is large, of its
/// logits for the first tokens.
std::vector<SummationRow> compare_summations(const Gpt2& model, const Experiment& experiment,
                                             const Implementation& implementation,
                                             std::uint64_t seed);
/// Prints them as a table.
void print_summations(const std::vector<SummationRow>& rows);

/// The prompt and what followed. Control characters are shown by their codes.
void print_continuation(const std::string& prompt, const Run& run, const Tokenizer& tokenizer);

/// A row of the results file.
/// @param baseline loss_delta is the difference from its loss
nlohmann::ordered_json json_row(const Run& run, const Experiment& experiment, const Run& baseline);

}  // namespace fa
