#pragma once
/// @file
/// What another implementation found for the same model and tokens (scripts/reference_gpt2.py).

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "chapters/07_gpt2_124m/evaluation.h"

namespace fa {

/// The contents of a `reference.json`.
struct ReferenceLosses {
    std::string implementation;           ///< what computed it
    std::string tokens_file;              ///< name of the tokens' file, empty if not said
    std::int64_t context = 0;             ///< tokens of a sequence
    std::int64_t targets = 0;             ///< of all sequences; the last may be shorter
    std::vector<double> sequence_losses;  ///< fp32, nats, from the first sequence on
    /// Over all targets, with everything in bf16, the scores included.
    std::optional<double> bf16_scores_loss;
    std::string prompt;                      ///< empty if there is no continuation
    std::vector<std::int32_t> continuation;  ///< greedy, fp32

    /// How far apart losses are.
    struct Distance {
        double largest = 0;          ///< of all sequences, NaN if one is
        std::int64_t sequences = 0;  ///< how many could be compared
    };

    /// Compares the losses of the sequences that both have in full. Nothing if there is none, or
    /// the plan cuts the tokens differently.
    std::optional<Distance> distance(const EvaluationPlan& plan,
                                     const Evaluation& evaluation) const;
};

/// Reads a `reference.json`. @throws std::runtime_error naming the file and what it lacks
ReferenceLosses read_reference_losses(const std::filesystem::path& path);

}  // namespace fa
