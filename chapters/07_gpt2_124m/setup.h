#pragma once
/// @file
/// What the program is asked for: its flags, and the model, tokens and prompt that they name.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chapters/07_gpt2_124m/experiment.h"
#include "chapters/07_gpt2_124m/gpt2_model.h"
#include "chapters/07_gpt2_124m/reference_losses.h"
#include "common/tokenizer.h"

namespace fa {

/// What the flags say, before anything is read.
struct Flags {
    std::filesystem::path model, tokens, reference;  ///< empty: see the flags' descriptions
    std::int64_t count = 0, context = 0, batch = 4, stats = 16, generate = 64;
    int threads = 0;
    std::string implementations, activations, prompt;
    Sampling sampling;

    /// Declares the flags.
    void add_to(CLI::App& app);
};

/// What they name.
struct Setup {
    Gpt2 model;
    std::string model_name, tokens_name;  ///< without the folders they lie in
    std::vector<const Implementation*> implementations;
    std::vector<DType> activations;        ///< fp32 first: the others are compared with it
    std::unique_ptr<Tokenizer> tokenizer;  ///< null if there is none
    std::string prompt;                    ///< empty: nothing to continue
    std::optional<ReferenceLosses> reference;
    std::vector<std::int32_t> expected_continuation;  ///< the reference's, of this prompt
    Experiment experiment;
};

/// Reads it all.
/// @param device        where attentions have to run
/// @param default_model the folder of the model that is used if none is named
/// @throws UsageError for flags that name nothing or do not fit the model, and what reading throws
Setup prepare(Flags flags, Device device, std::uint64_t seed,
              const std::filesystem::path& default_model);

}  // namespace fa
