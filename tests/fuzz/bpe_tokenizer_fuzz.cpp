// Any bytes as text, and any bytes as vocabulary files: text always comes back, files are refused
// with one line or make a tokenizer that works.
#include <string>

#include "common/bpe_tokenizer.h"
#include "common/token_shard.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/made_up_vocabulary.h"
#include "tests/refusal.h"

using namespace fa;
using namespace fa::testing;

namespace {

MadeUpVocabulary small_vocabulary() {
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

void check_text(const BpeTokenizer& tokenizer, std::string_view text) {
    std::string_view rest = text;
    for (const std::string_view piece : gpt2_pieces(text)) {
        require(!piece.empty() && rest.starts_with(piece), "pieces cover the text in order");
        rest.remove_prefix(piece.size());
    }
    require(rest.empty(), "pieces cover all of the text");

    const auto ids = tokenizer.encode(text);
    require(refusal([&] { check_token_ids(ids, tokenizer.vocabulary_size(), ""); }).empty(),
            "ids are in the vocabulary");
    require(tokenizer.decode(ids) == text, "the text comes back");
    if (tokenizer.end_of_text())
        require(tokenizer.decode(tokenizer.encode_with_end_of_text(text)) == text,
                "the text comes back with its marks");
}

void load(std::string_view vocabulary, std::string_view merges) {
    const std::string refused = refusal([&] {
        check_text(BpeTokenizer::from_text(vocabulary, merges), "aaab abab\n\n it's\xc3\xa9\xff");
    });
    require(refused.empty() || one_line(refused), "a refusal is one line");
}

/// Vocabulary before the first zero byte, merges after it.
void check_files(std::string_view input) {
    const std::size_t zero = input.find('\0');
    if (zero == std::string_view::npos) return;
    const std::string_view merges = input.substr(zero + 1);
    load(input.substr(0, zero), merges);
    // Chance does not keep all 256 bytes of a vocabulary alive: the merges get a second try.
    static const std::string GOOD = small_vocabulary().json();
    load(GOOD, merges);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const BpeTokenizer TOKENIZER = [] {
        const MadeUpVocabulary vocabulary = small_vocabulary();
        return BpeTokenizer::from_text(vocabulary.json(), vocabulary.merge_lines());
    }();
    const std::string_view input = as_text(data, size);
    check_text(TOKENIZER, input);
    check_files(input);
    return 0;
}

std::vector<std::string> fuzz_seeds() {
    const MadeUpVocabulary vocabulary = small_vocabulary();
    return {
        "",
        "Hello, y'all! It's 1,234 caf\xc3\xa9s\r\n\n\t  and <|endoftext|> more ",
        "aaaaaaaaaabababab \xe6\xb0\xb4\xf0\x9f\xa6\x99\xc2\xa0\xe3\x80\x80",
        "\xe2\x80\xff\xc0\xaf\xed\xa0\x80\xf0\x9f",
        vocabulary.json() + std::string(1, '\0') + vocabulary.merge_lines(),
        "{\"a\":0}" + std::string(1, '\0') + "#version: 0.2\na a\r\na b\n",
    };
}
