#pragma once
/// @file
/// Text to token ids and back.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fa {

/// What a language model needs of a tokenizer. Text is bytes, usually but not necessarily UTF-8;
/// decode(encode(text)) == text for any bytes.
class Tokenizer {
  public:
    virtual ~Tokenizer() = default;

    /// Ids of `text`, each in [0, vocabulary_size()). No part of the text is taken as a command:
    /// the characters of "<|endoftext|>" are encoded as those characters.
    virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;

    /// The bytes of `tokens`, put together. A single token may hold part of a UTF-8 character.
    /// @throws std::out_of_range naming position and id for ids outside [0, vocabulary_size())
    virtual std::string decode(std::span<const std::int32_t> tokens) const = 0;

    /// Number of token ids there are: 0 … vocabulary_size() − 1.
    virtual std::int32_t vocabulary_size() const = 0;
};

/// A token is a byte: the vocabulary of the tiny model.
class ByteTokenizer : public Tokenizer {
  public:
    std::vector<std::int32_t> encode(std::string_view text) const override;
    std::string decode(std::span<const std::int32_t> tokens) const override;
    std::int32_t vocabulary_size() const override { return 256; }
};

}  // namespace fa
