// Any bytes as text: the pieces cover it, the ids are in the vocabulary, the text comes back.
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/small_vocabulary.h"

using namespace fa;
using namespace fa::testing;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const BpeTokenizer TOKENIZER = [] {
        const MadeUpVocabulary vocabulary = small_vocabulary();
        return BpeTokenizer::from_text(vocabulary.json(), vocabulary.merge_lines());
    }();
    const std::string_view text = as_text(data, size);
    std::string_view rest = text;
    for (const std::string_view piece : gpt2_pieces(text)) {
        require(!piece.empty() && rest.starts_with(piece), "pieces cover the text in order");
        rest.remove_prefix(piece.size());
    }
    require(rest.empty(), "pieces cover all of the text");
    check_text(TOKENIZER, text);
    return 0;
}

std::vector<std::string> fuzz_seeds() {
    return {
        "",
        "Hello, y'all! It's 1,234 caf\xc3\xa9s\r\n\n\t  and <|endoftext|> more ",
        "aaaaaaaaaabababab \xe6\xb0\xb4\xf0\x9f\xa6\x99\xc2\xa0\xe3\x80\x80",
        "\xe2\x80\xff\xc0\xaf\xed\xa0\x80\xf0\x9f",
        std::string(300, 'a') + std::string(300, ' '),
    };
}
