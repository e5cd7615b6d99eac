#pragma once
/// @file
/// GPT-2's byte-level byte-pair encoding (Radford et al. 2019, "Language Models are Unsupervised
/// Multitask Learners", section 2.2; the algorithm is that of encoder.py in the code they
/// published).

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/tokenizer.h"

namespace fa {

/// Cuts text into the pieces inside which tokens are merged; none is merged across a border. The
/// pieces are those of GPT-2's pattern
///
///     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
///
/// in Unicode. A byte that is no part of well-formed UTF-8 counts as a character that is neither
/// letter, number nor space. Linear in the length of the text; pieces point into it and cover it.
std::vector<std::string_view> gpt2_pieces(std::string_view text);

/// Byte-level BPE with GPT-2's vocabulary files.
class BpeTokenizer : public Tokenizer {
  public:
    /// Reads the vocabulary (JSON, token -> id: `vocab.json` or `encoder.json`) and the merges in
    /// order of rank (one "left right" per line: `merges.txt` or `vocab.bpe`).
    /// @throws std::runtime_error naming file, line or token if a file is malformed, ids are not
    ///         exactly 0…n−1, one of the 256 bytes is missing, or a merge's parts or result are not
    ///         in the vocabulary
    BpeTokenizer(const std::filesystem::path& vocabulary, const std::filesystem::path& merges);

    /// As above, from the contents of the files; the sources are their names in messages.
    static BpeTokenizer from_text(std::string_view vocabulary_json, std::string_view merges,
                                  const std::string& vocabulary_source = "vocabulary",
                                  const std::string& merges_source = "merges");

    /// Finds the two files in a model's directory by any of their usual names.
    /// @throws std::runtime_error naming the directory and the names looked for
    static BpeTokenizer from_directory(const std::filesystem::path& directory);

    /// True if from_directory() would find both files.
    static bool files_in(const std::filesystem::path& directory);

    /// Ids of `text`, "<|endoftext|>" taken as ordinary characters. n bytes take O(n log n) time
    /// even if they are one word.
    std::vector<std::int32_t> encode(std::string_view text) const override;

    /// As encode(), but each "<|endoftext|>" becomes the one id that separates documents. For
    /// trusted text only: it lets the text end the document.
    /// @throws std::runtime_error if the vocabulary has no such token
    std::vector<std::int32_t> encode_with_end_of_text(std::string_view text) const;

    std::string decode(std::span<const std::int32_t> tokens) const override;
    std::int32_t vocabulary_size() const override {
        return static_cast<std::int32_t>(token_bytes_.size());
    }

    /// The id of "<|endoftext|>", if the vocabulary has it.
    std::optional<std::int32_t> end_of_text() const { return end_of_text_; }

    /// How the token that separates documents is written.
    static constexpr std::string_view END_OF_TEXT = "<|endoftext|>";

  private:
    struct Merge {
        std::int32_t rank;    ///< line of the merges file: lower goes first
        std::int32_t result;  ///< id of the joined token
    };

    struct Scratch;

    BpeTokenizer() = default;
    void encode_piece(std::string_view piece, Scratch& scratch,
                      std::vector<std::int32_t>& out) const;

    static std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
        return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 |
               static_cast<std::uint32_t>(right);
    }

    std::vector<std::string> token_bytes_;  ///< id -> bytes
    std::int32_t byte_ids_[256] = {};       ///< byte -> id of the token of that one byte
    /// pair_key(left, right) -> merge
    std::unordered_map<std::uint64_t, Merge> merges_;
    std::optional<std::int32_t> end_of_text_;
};

}  // namespace fa
