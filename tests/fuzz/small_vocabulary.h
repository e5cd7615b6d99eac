#pragma once
/// @file
/// The vocabulary of the tokenizer's two fuzz targets, and what holds for every tokenizer and text.

#include <string_view>
#include <utility>

#include "common/bpe_tokenizer.h"
#include "common/token_shard.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/made_up_vocabulary.h"
#include "tests/refusal.h"

namespace fa::testing {

/// All bytes, the end of text, and merges that overlap, build on each other and cross characters.
inline MadeUpVocabulary small_vocabulary() {
    MadeUpVocabulary vocabulary;
    vocabulary.add("<|endoftext|>");
    for (const auto& [left, right] :
         {std::pair("a", "a"), std::pair("aa", "aa"), std::pair(" ", "a"),
          std::pair("\xc3", "\xa9"), std::pair("\n", "\n"), std::pair("'", "s"),
          std::pair("\xff", "\xff"), std::pair("a", "b"), std::pair("ab", "ab"),
          std::pair("b", "a")})
        vocabulary.merge(left, right);
    return vocabulary;
}

/// The ids of any text are in the vocabulary and give the text back.
inline void check_text(const BpeTokenizer& tokenizer, std::string_view text) {
    const auto ids = tokenizer.encode(text);
    require(refusal([&] { check_token_ids(ids, tokenizer.vocabulary_size(), ""); }).empty(),
            "ids are in the vocabulary");
    require(tokenizer.decode(ids) == text, "the text comes back");
    if (tokenizer.end_of_text())
        require(tokenizer.decode(tokenizer.encode_with_end_of_text(text)) == text,
                "the text comes back with its marks");
}

}  // namespace fa::testing
