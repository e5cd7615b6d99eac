#pragma once
/// @file
/// The text of a model: its tokenizer, and the tokens it is evaluated on.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "chapters/07_gpt2_124m/gpt2_config.h"
#include "common/tokenizer.h"

namespace fa {

/// The tokenizer that belongs to a model: GPT-2's if its two files lie beside the weights, bytes
/// for a vocabulary of 256, else none (null).
/// @throws std::runtime_error naming the file if one is malformed, or if the tokenizer has more ids
///         than the network
std::unique_ptr<Tokenizer> tokenizer_of(const std::filesystem::path& model_directory,
                                        const Gpt2Config& config);

/// How a file holds tokens: as their ids in a shard, or as text for the tokenizer.
enum class TokenFormat { shard, text };

/// What a file is by its name: *.bin is a shard, all else text. Not by its content: a shard with a
/// damaged header would pass for text.
TokenFormat token_format_of(const std::filesystem::path& path);

/// The tokens of a file. In text for GPT-2's tokenizer "<|endoftext|>" separates documents.
/// @throws std::runtime_error naming the file and the cause: a malformed shard, ids outside the
///         vocabulary, an empty file, or text without a tokenizer
std::vector<std::int32_t> read_tokens(const std::filesystem::path& path, TokenFormat format,
                                      const Gpt2Config& config, const Tokenizer* tokenizer);

}  // namespace fa
