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
    std::filesystem::path model;      ///< --model; empty: the default model
    std::filesystem::path tokens;     ///< --tokens; empty: what the model's folder names
    std::string token_format;         ///< --token-format; empty: by the file's name
    std::filesystem::path reference;  ///< --reference; empty: the one beside the model
    std::int64_t count = 0;           ///< --count: targets; 0: all, up to a limit
    std::int64_t context = 0;         ///< --context; 0: the network's
    std::int64_t batch = 4;           ///< --batch: sequences in one pass
    std::int64_t stats = 16;          ///< --stats: sequences for the largest scores
    std::int64_t generate = 64;       ///< --generate: tokens to continue the prompt by
    int threads = 0;                  ///< --threads; 0: as many as OpenMP offers
    std::string implementations;      ///< --implementations: names, by commas; empty: all
    std::string activations;          ///< --activations: types, by commas; empty: the default
    std::string prompt;               ///< --prompt; empty: the reference's
    Sampling sampling;                ///< --temperature, --top-k

    /// Declares the flags.
    void add_to(CLI::App& app);
};

/// What they name.
struct Setup {
    Gpt2 model;                                          ///< in fp32
    std::string model_name;                              ///< of the folder, without where it lies
    std::string tokens_name;                             ///< of the file, likewise
    std::vector<const Implementation*> implementations;  ///< to be run
    std::vector<DType> activations;            ///< fp32 first: the others are compared with it
    std::unique_ptr<Tokenizer> tokenizer;      ///< null if there is none
    std::string prompt;                        ///< empty: nothing to continue
    std::optional<ReferenceLosses> reference;  ///< for these tokens, if there is one
    std::vector<std::int32_t> expected_continuation;  ///< the reference's, of this prompt
    Experiment experiment;  ///< all that stays the same for each attention
};

/// Reads it all.
/// @param device        where attentions have to run
/// @param default_model the folder of the model that is used if none is named
/// @throws UsageError for flags that name nothing or do not fit the model, and what reading throws
Setup prepare(Flags flags, Device device, std::uint64_t seed,
              const std::filesystem::path& default_model);

}  // namespace fa
