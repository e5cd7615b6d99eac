// Any bytes as vocabulary files: refused with one line, or a tokenizer that works.
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/small_vocabulary.h"

using namespace fa;
using namespace fa::testing;

namespace {

void load(std::string_view vocabulary, std::string_view merges) {
    const std::string refused = refusal([&] {
        check_text(BpeTokenizer::from_text(vocabulary, merges), "aaab abab\n\n it's\xc3\xa9\xff");
    });
    require(refused.empty() || one_line(refused), "a refusal is one line");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // The vocabulary stands before the first zero byte, the merges after it.
    const std::string_view input = as_text(data, size);
    const std::size_t zero = input.find('\0');
    load(input.substr(0, zero), zero == std::string_view::npos ? "" : input.substr(zero + 1));
    // Chance does not keep all 256 bytes of a vocabulary alive: as merges, the input gets a second
    // try.
    static const std::string GOOD = small_vocabulary().json();
    load(GOOD, input);
    return 0;
}

std::vector<std::string> fuzz_seeds() {
    const MadeUpVocabulary vocabulary = small_vocabulary();
    return {
        vocabulary.merge_lines(),
        "a a\r\na b\r\n\r\n# #",
        "{\"a\":0,\"\\u0120\":1}",
        vocabulary.json() + std::string(1, '\0') + vocabulary.merge_lines(),
        "{\"a\":{\"a\":[-1,1.5,18446744073709551616]}}",
    };
}
