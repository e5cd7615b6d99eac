// GPT-2's tokenizer: the cutting of text, the merging of bytes, the vocabulary files.
#include "common/bpe_tokenizer.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "common/token_shard.h"
#include "tests/made_up_vocabulary.h"
#include "tests/reference_models.h"
#include "tests/refusal.h"
#include "tests/temporary_directory.h"

using namespace fa;
using namespace fa::testing;
using namespace std::string_literals;
using Ids = std::vector<std::int32_t>;

namespace {

using Pieces = std::vector<std::string_view>;

/// The merging of one piece as OpenAI's encoder.py does it: look through the whole word for the
/// pair of lowest rank, merge all its occurrences from left to right, start again. Slow and plain.
Ids merge_plainly(std::string_view piece, const MadeUpVocabulary& vocabulary) {
    std::vector<std::string> word;
    for (const char c : piece) word.emplace_back(1, c);
    for (;;) {
        const auto& merges = vocabulary.merges;
        auto best = merges.end();
        for (std::size_t i = 0; i + 1 < word.size(); ++i) {
            const auto found =
                std::find(merges.begin(), merges.end(), std::pair(word[i], word[i + 1]));
            best = std::min(best, found);
        }
        if (best == merges.end()) break;
        std::vector<std::string> merged;
        for (std::size_t i = 0; i < word.size(); ++i) {
            merged.push_back(word[i]);
            if (i + 1 < word.size() && word[i] == best->first && word[i + 1] == best->second)
                merged.back() += word[++i];
        }
        word = std::move(merged);
    }
    Ids ids;
    for (const std::string& token : word) ids.push_back(vocabulary.ids.at(token));
    return ids;
}

BpeTokenizer tokenizer_of(const MadeUpVocabulary& vocabulary) {
    return BpeTokenizer::from_text(vocabulary.json(), vocabulary.merge_lines());
}

/// Bytes of all kinds: ASCII, whole characters of every length, and broken ones.
std::string random_bytes(std::mt19937& random, std::size_t units) {
    static const std::vector<std::string> UNITS = {
        "a",    "b",      "c",      " ",      " ",    "\n",   "\r\n", "\t",       "'s",
        "'ll",  "'",      "1",      "23",     "!",    "\0"s,  "é",    "ß",        "水",
        "🦙", "\u00a0", "\u3000", "\u0301", "\xe2", "\x80", "\xff", "\xf0\x9f", "\xed\xa0\x80"};
    std::string text;
    for (std::size_t i = 0; i < units; ++i)
        text += random() % 8 == 0 ? std::string(1, static_cast<char>(random() % 256))
                                  : UNITS[random() % UNITS.size()];
    return text;
}

std::string contents(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

template <class Action>
double seconds_to(Action&& action) {
    const auto start = std::chrono::steady_clock::now();
    action();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("Text is cut as GPT-2's pattern cuts it") {
    CHECK(gpt2_pieces("").empty());
    CHECK(gpt2_pieces("Hello world") == Pieces{"Hello", " world"});
    CHECK(gpt2_pieces("Hello  world") == Pieces{"Hello", " ", " world"});
    CHECK(gpt2_pieces("Hello   world") == Pieces{"Hello", "  ", " world"});
    CHECK(gpt2_pieces("Hello world ") == Pieces{"Hello", " world", " "});
    CHECK(gpt2_pieces("   ") == Pieces{"   "});
    CHECK(gpt2_pieces(" a") == Pieces{" a"});
    CHECK(gpt2_pieces("\n\nx") == Pieces{"\n", "\n", "x"});
    CHECK(gpt2_pieces("\n\n") == Pieces{"\n\n"});
    CHECK(gpt2_pieces("\n =") == Pieces{"\n", " ="});
    CHECK(gpt2_pieces("\nx") == Pieces{"\n", "x"});
    CHECK(gpt2_pieces(" \nx") == Pieces{" ", "\n", "x"});
    CHECK(gpt2_pieces("a\r\nb") == Pieces{"a", "\r", "\n", "b"});
    CHECK(gpt2_pieces("a\tb") == Pieces{"a", "\t", "b"});
    // Contractions, lower case only, wherever they stand; a blank before the apostrophe prevents
    // them.
    CHECK(gpt2_pieces("it's we'll I'd y'all I'M") ==
          Pieces{"it", "'s", " we", "'ll", " I", "'d", " y", "'", "all", " I", "'", "M"});
    CHECK(gpt2_pieces("'sure 's ''s") == Pieces{"'s", "ure", " '", "s", " ''", "s"});
    CHECK(gpt2_pieces("they're've'm't") == Pieces{"they", "'re", "'ve", "'m", "'t"});
    CHECK(gpt2_pieces("'r 'l'") == Pieces{"'", "r", " '", "l", "'"});
    // Runs of one class; a blank joins the run after it.
    CHECK(gpt2_pieces("abc123!? 45 ...x") == Pieces{"abc", "123", "!?", " 45", " ...", "x"});
    CHECK(gpt2_pieces("<|endoftext|>") == Pieces{"<|", "endoftext", "|>"});
    CHECK(gpt2_pieces("_a_") == Pieces{"_", "a", "_"});
}

TEST_CASE("Letters, numbers and white space are Unicode's") {
    CHECK(gpt2_pieces("Größe") == Pieces{"Größe"});
    CHECK(gpt2_pieces("水1½Ⅻ٣x") == Pieces{"水", "1½Ⅻ٣", "x"});  // Nd, No, Nl, Nd
    CHECK(gpt2_pieces("ªʰǅא") == Pieces{"ªʰǅא"});                // Lo, Lm, Lt, Lo
    CHECK(gpt2_pieces("e\u0301x") ==
          Pieces{"e", "\u0301", "x"});  // a combining accent is no letter
    CHECK(gpt2_pieces(" 🦙.") == Pieces{" 🦙."});
    CHECK(gpt2_pieces("\U00020000\U0001d7ce") == Pieces{"\U00020000", "\U0001d7ce"});  // 4 bytes
    for (const std::string space :
         {"\t", "\n", "\v", "\f", "\r", "\u0085", "\u00a0", "\u1680", "\u2000", "\u200a", "\u2028",
          "\u2029", "\u202f", "\u205f", "\u3000"}) {
        CAPTURE(space);
        const std::string text = "x" + space + space + "y";
        CHECK(gpt2_pieces(text) == Pieces{"x", space, space, "y"});
        CHECK(gpt2_pieces("x" + space + " y") == Pieces{"x", space, " y"});
    }
    // Not white space, though some libraries' \s takes them for it: FS…US, zero-width space, the
    // Mongolian vowel separator, the byte-order mark.
    for (const std::string other : {"\x1c", "\x1f", "\u200b", "\u180e", "\ufeff", "\u2060"}) {
        CAPTURE(other);
        CHECK(gpt2_pieces("x " + other + other + "y") == Pieces{"x", " " + other + other, "y"});
    }
}

TEST_CASE("Bytes that are no UTF-8 are neither letters, numbers nor space, and none is lost") {
    CHECK(gpt2_pieces("a\xff"
                      "b") == Pieces{"a", "\xff", "b"});
    CHECK(gpt2_pieces("\xe2\x80") == Pieces{"\xe2\x80"});
    CHECK(gpt2_pieces(" \xc0\xaf") == Pieces{" \xc0\xaf"});      // an overlong "/"
    CHECK(gpt2_pieces("\xc1\x81z") == Pieces{"\xc1\x81", "z"});  // an overlong "A" is no letter
    CHECK(gpt2_pieces("\xed\xa0\x80z") == Pieces{"\xed\xa0\x80", "z"});          // a surrogate
    CHECK(gpt2_pieces("\xf4\x90\x80\x80z") == Pieces{"\xf4\x90\x80\x80", "z"});  // above U+10FFFF
    CHECK(gpt2_pieces("\xf0\x9f") == Pieces{"\xf0\x9f"});
    CHECK(gpt2_pieces("\0"s) == Pieces{"\0"s});
    CHECK(gpt2_pieces("\xc3") == Pieces{"\xc3"});  // a letter cut off by the end of the text
    std::mt19937 random(1);
    for (int round = 0; round < 2000; ++round) {
        const std::string text = random_bytes(random, random() % 40);
        std::string joined;
        for (const std::string_view piece : gpt2_pieces(text)) {
            CHECK_FALSE(piece.empty());
            joined += piece;
        }
        CHECK(joined == text);
    }
}

TEST_CASE("Merges are applied by rank, leftmost first") {
    MadeUpVocabulary vocabulary;
    vocabulary.merge("l", "l");
    vocabulary.merge("h", "e");
    vocabulary.merge("a", "a");
    vocabulary.merge("he", "ll");
    vocabulary.merge("hell", "o");
    const BpeTokenizer tokenizer = tokenizer_of(vocabulary);
    const auto id = [&](const std::string& token) { return vocabulary.ids.at(token); };
    CHECK(tokenizer.vocabulary_size() == 256 + 5);
    CHECK(tokenizer.encode("hello") == Ids{id("hello")});
    CHECK(tokenizer.encode("helo") == Ids{id("he"), id("l"), id("o")});
    CHECK(tokenizer.encode("lll") == Ids{id("ll"), id("l")});
    CHECK(tokenizer.encode("aaaaa") == Ids{id("aa"), id("aa"), id("a")});
    CHECK(tokenizer.encode("hel lo") == Ids{id("he"), id("l"), id(" "), id("l"), id("o")});
    CHECK(tokenizer.encode("").empty());
    CHECK(tokenizer.decode(tokenizer.encode("hello\xff\0h"s)) == "hello\xff\0h"s);
}

TEST_CASE("For random merges the tokens are those of the plain algorithm") {
    std::mt19937 random(2);
    for (int round = 0; round < 300; ++round) {
        // Few letters and many merges in random order, so that pairs overlap, tokens are made in
        // several ways, and a merge may come before those that its parts need.
        MadeUpVocabulary vocabulary;
        std::vector<std::string> tokens = {"a", "b", "c"};
        std::vector<std::pair<std::string, std::string>> merges;
        for (int i = 0; i < 12; ++i) {
            const std::string left = tokens[random() % tokens.size()];
            const std::string right = tokens[random() % tokens.size()];
            if (std::find(merges.begin(), merges.end(), std::pair(left, right)) != merges.end())
                continue;
            merges.emplace_back(left, right);
            tokens.push_back(left + right);
        }
        if (round % 2 == 1) std::shuffle(merges.begin(), merges.end(), random);
        for (const auto& [left, right] : merges) vocabulary.add(left + right);
        for (const auto& [left, right] : merges) vocabulary.merge(left, right);
        const BpeTokenizer tokenizer = tokenizer_of(vocabulary);
        for (int word = 0; word < 20; ++word) {
            std::string text;
            for (std::size_t n = random() % 60; n > 0; --n)
                text += static_cast<char>('a' + random() % 3);
            CAPTURE(text);
            CHECK(tokenizer.encode(text) == merge_plainly(text, vocabulary));
        }
    }
}

TEST_CASE("decode(encode(bytes)) == bytes for any bytes") {
    MadeUpVocabulary vocabulary;
    vocabulary.merge(" ", "a");
    vocabulary.merge("\xe6", "\xb0");  // two thirds of a character
    vocabulary.merge("\xff", "\xff");
    vocabulary.merge("\n", "\n");
    const BpeTokenizer bpe = tokenizer_of(vocabulary);
    const ByteTokenizer byte;
    std::mt19937 random(3);
    for (int round = 0; round < 2000; ++round) {
        const std::string text = random_bytes(random, random() % 50);
        for (const Tokenizer* tokenizer :
             {static_cast<const Tokenizer*>(&bpe), static_cast<const Tokenizer*>(&byte)}) {
            const Ids ids = tokenizer->encode(text);
            check_token_ids(ids, tokenizer->vocabulary_size(), "encode()");
            CHECK(tokenizer->decode(ids) == text);
        }
    }
    CHECK(byte.encode("\0\xff"s
                      "a") == Ids{0, 255, 97});
    // One id may be part of a character.
    CHECK(bpe.decode(Ids{vocabulary.ids.at("\xe6\xb0")}) == "\xe6\xb0");
}

TEST_CASE("Ids outside the vocabulary are refused by decode()") {
    const BpeTokenizer bpe = tokenizer_of({});
    const ByteTokenizer byte;
    for (const Tokenizer* tokenizer :
         {static_cast<const Tokenizer*>(&bpe), static_cast<const Tokenizer*>(&byte)}) {
        CHECK_THROWS_WITH_AS(tokenizer->decode(Ids{1, 256}),
                             "token 1 is id 256, the vocabulary has ids 0 to 255",
                             std::out_of_range);
        CHECK_THROWS_AS(tokenizer->decode(Ids{-1}), std::out_of_range);
        CHECK(tokenizer->decode(Ids{}) == "");
    }
}

TEST_CASE("The end of text is text unless it is asked for") {
    MadeUpVocabulary vocabulary;
    vocabulary.add("<|endoftext|>");
    const BpeTokenizer tokenizer = tokenizer_of(vocabulary);
    REQUIRE(tokenizer.end_of_text() == 256);
    CHECK(tokenizer.encode("<|endoftext|>").size() == 13);
    CHECK(tokenizer.encode_with_end_of_text("<|endoftext|>") == Ids{256});
    CHECK(tokenizer.encode_with_end_of_text("a<|endoftext|><|endoftext|>b<|endoftext|") == [&] {
        Ids expected = {vocabulary.ids.at("a"), 256, 256};
        for (const std::int32_t id : tokenizer.encode("b<|endoftext|")) expected.push_back(id);
        return expected;
    }());
    CHECK(tokenizer.encode_with_end_of_text("") == Ids{});
    CHECK(tokenizer.decode(Ids{256}) == "<|endoftext|>");

    const BpeTokenizer without = tokenizer_of({});
    CHECK_FALSE(without.end_of_text());
    CHECK(refusal([&] { without.encode_with_end_of_text("a"); }) ==
          "the vocabulary has no token <|endoftext|>");
}

TEST_CASE("Malformed vocabularies are refused") {
    MadeUpVocabulary good;
    good.merge("a", "b");
    REQUIRE(refusal([&] { tokenizer_of(good); }) == "");
    const std::string json = good.json();
    const auto refused = [&](const std::string& text) {
        const std::string message =
            refusal([&] { BpeTokenizer::from_text(text, "", "vocab.json"); });
        CAPTURE(message);
        CHECK(one_line(message));
        CHECK(message.starts_with("vocab.json: vocabulary "));
        return message.substr(std::string("vocab.json: vocabulary ").size());
    };
    const auto with = [&](const std::string& entries) {  // entries before the closing brace
        return json.substr(0, json.size() - 1) + "," + entries + "}";
    };
    CHECK(refused("").starts_with("is not JSON"));
    CHECK(refused(json.substr(0, json.size() - 1)).starts_with("is not JSON"));
    CHECK(refused(json + "\0"s) == fmt::format("is not JSON: zero byte at offset {}", json.size()));
    CHECK(refused("[]") == "has an unexpected array");
    CHECK(refused("1") == "is no object");
    CHECK(refused("{}") == "lacks a token for byte 0");
    CHECK(refused(with(R"("xy":{"a":1})")) == "has an object as the id of a token");
    CHECK(refused(with(R"("xy":"1")")) == "has an unexpected string");
    CHECK(refused(with(R"("xy":-1)")) == "has the negative number -1");
    CHECK(refused(with(R"("xy":257.0)")) == "has a number that is no 64-bit integer: 257.0");
    CHECK(refused(with(R"("xy":258)")) == "has id 258 but only 258 tokens");
    CHECK(refused(with(R"("xy":4294967553)")) ==
          "has the id 4294967553, above the limit of 524288");
    CHECK(refused(with(R"("xy":256)")).starts_with("gives id 256 to both \""));
    CHECK(refused(with(R"("ab":257)")) == R"(has token "ab" twice)");
    CHECK(refused(with(R"("":257)")) ==
          R"(has token "", which is not written in GPT-2's byte alphabet)");
    CHECK(refused(with(R"("a b":257)")) ==
          R"(has token "a b", which is not written in GPT-2's byte alphabet)");
    CHECK(refused(with(R"("水":257)")) ==
          R"(has token "\xe6\xb0\xb4", which is not written in GPT-2's byte alphabet)");
    CHECK(refused(with("\"\xff\":257")).starts_with("is not JSON"));
    MadeUpVocabulary lacking;
    lacking.ids["ab"] = lacking.ids.at("\n");
    lacking.ids.erase("\n");
    CHECK(refused(lacking.json()) == "lacks a token for byte 10");
}

TEST_CASE("Malformed merges are refused with their line") {
    MadeUpVocabulary vocabulary;
    vocabulary.add("ab");
    vocabulary.add("##");
    const auto refused = [&](const std::string& merges) {
        return refusal([&] {
            BpeTokenizer::from_text(vocabulary.json(), merges, "vocab.json", "merges.txt");
        });
    };
    CHECK(refused("") == "");
    CHECK(refused("#version: 0.2\na b\n") == "");
    CHECK(refused("#version: 0.2\r\na b\r\n\r\n") == "");
    CHECK(refused("a b") == "");
    CHECK(refused("# #\na b\n") == "");  // a merge of two "#", not a comment
    CHECK(refused("a b\na b\n") == R"(merges.txt:2: merge "a b" occurs twice)");
    CHECK(refused("#version: 0.2\nab\n") ==
          R"(merges.txt:2: merge "ab" is not two tokens with a blank between them)");
    for (const std::string line : {"a b c", "a  b", " a b", "a b ", "a\tb"}) {
        CAPTURE(line);
        CHECK(one_line(refused(line)));
    }
    CHECK(refused("a c\n") ==
          R"(merges.txt:1: merge "a c" needs the token "ac", which the vocabulary lacks)");
    CHECK(refused("a xyz\n") ==
          R"(merges.txt:1: merge "a xyz" needs the token "xyz", which the vocabulary lacks)");
    CHECK(refused(" b\n") ==
          R"(merges.txt:1: merge " b" needs the token "", which the vocabulary lacks)");
    CHECK(refused("a \xff\n") ==
          R"(merges.txt:1: merge "a \xff" is not written in GPT-2's byte alphabet)");
    CHECK(one_line(refused(std::string(1 << 20, 'x') + "\n")));
}

TEST_CASE("Both sets of file names are found in a model's directory") {
    MadeUpVocabulary vocabulary;
    vocabulary.merge("a", "b");
    struct Names {
        const char *json, *merges;
    };
    for (const Names names :
         {Names{"vocab.json", "merges.txt"}, Names{"encoder.json", "vocab.bpe"}}) {
        const TemporaryDirectory directory;
        CHECK_FALSE(BpeTokenizer::files_in(directory.path()));
        CHECK(refusal([&] { BpeTokenizer::from_directory(directory.path()); }) ==
              directory.path().string() +
                  ": needs vocab.json or encoder.json and merges.txt or vocab.bpe for GPT-2's "
                  "tokenizer");
        directory.write(names.json, vocabulary.json());
        CHECK_FALSE(BpeTokenizer::files_in(directory.path()));
        directory.write(names.merges, vocabulary.merge_lines());
        CHECK(BpeTokenizer::files_in(directory.path()));
        CHECK(BpeTokenizer::from_directory(directory.path()).encode("ab") == Ids{256});
        directory.write(names.merges, "a\n");
        CHECK(refusal([&] {
                  BpeTokenizer::from_directory(directory.path());
              }).starts_with((directory.path() / names.merges).string() + ":1: merge"));
        std::filesystem::resize_file(directory.path() / names.json, 1ull << 30);
        CHECK(refusal([&] {
                  BpeTokenizer::from_directory(directory.path());
              }).find("above the limit of") != std::string::npos);
    }
}

TEST_CASE("Megabyte-long words take a moment, not a day") {
    // Rules that keep merging: powers of two of "a", and all pairs of letters.
    MadeUpVocabulary vocabulary;
    for (std::size_t n = 1; n <= 64; n *= 2)
        vocabulary.merge(std::string(n, 'a'), std::string(n, 'a'));
    for (char left = 'b'; left <= 'z'; ++left)
        for (char right = 'b'; right <= 'z'; ++right)
            vocabulary.merge(std::string(1, left), std::string(1, right));
    const BpeTokenizer tokenizer = tokenizer_of(vocabulary);
    constexpr std::size_t SIZE = 1 << 20;
    std::string letters;
    std::mt19937 random(4);
    for (std::size_t i = 0; i < SIZE; ++i) letters += static_cast<char>('b' + random() % 25);
    std::string continuation;  // bytes that continue nothing
    for (std::size_t i = 0; i < SIZE; ++i) continuation += '\x80';
    for (const std::string& word :
         {std::string(SIZE, 'a'), letters, std::string(SIZE, ' '), std::string(SIZE, '\n'),
          std::string(SIZE, '\''), continuation, std::string(SIZE, '7')}) {
        Ids ids;
        const double seconds = seconds_to([&] { ids = tokenizer.encode(word); });
        CHECK(tokenizer.decode(ids) == word);
        // A quadratic algorithm would take hours: the bound needs no fast machine.
        CHECK(seconds < 30);
    }
    CHECK(tokenizer.encode(std::string(SIZE, 'a')) ==
          Ids(SIZE / 128, vocabulary.ids.at(std::string(128, 'a'))));
}

TEST_CASE("GPT-2's own vocabulary gives GPT-2's ids") {
    const auto directory = reference_model("gpt2-124m");
    if (!directory) return;
    const BpeTokenizer gpt2 = BpeTokenizer::from_directory(*directory);
    REQUIRE(gpt2.vocabulary_size() == 50257);
    REQUIRE(gpt2.end_of_text() == 50256);
    struct Known {
        std::string text;
        Ids ids;
    };
    const Known KNOWN[] = {
        // Broken UTF-8: bytes stand for themselves, and merge where there is a merge of them.
        {"\xe2", {158}},
        {"\x80", {222}},
        {"\xe2\x80", {447}},
        {"\xed\xa0\x80", {169, 254, 222}},
        {"\xf0\x9f", {8582}},
        {"\xff", {187}},
        {"\xc0\xaf", {124, 107}},
        {"a\xff"
         "b",
         {64, 187, 65}},
        {"\0"s, {188}},
        {"a\ufffd"
         "b",
         {64, 4210, 65}},
        // White space before a word, at the start and at the end.
        {"\n\nx", {198, 198, 87}},
        {"\n\n", {628}},
        {"\n\n\n", {628, 198}},
        {"x\n\n y", {87, 628, 331}},
        {"\n =", {198, 796}},
        {"Hello  world", {15496, 220, 995}},
        {"Hello world ", {15496, 995, 220}},
        {"   ", {220, 220, 220}},
        {"", {}},
        {"a\r\nb", {64, 201, 198, 65}},
        {"Hello world\r\n", {15496, 995, 201, 198}},
        {"<|endoftext|>", {27, 91, 437, 1659, 5239, 91, 29}},
        // Emoji, Chinese, accents.
        {" this is 🦙.cpp", {428, 318, 12520, 99, 247, 13, 20322}},
        {"Hello, y'all! How are you 😁 ?我想在apple工作1314151天～",
         {15496, 11,    331,   6,    439,   0,     1374,  389, 345,   30325,
          223,   5633,  22755, 239,  46349, 111,   28839, 101, 18040, 32432,
          98,    43291, 1485,  1415, 24309, 25465, 171,   121, 252}},
        {" Pokémon", {9887}},
        {"e\u0301", {68, 136, 223}},
        {"é", {2634}},
    };
    for (const Known& known : KNOWN) {
        CAPTURE(known.text);
        CHECK(gpt2.encode(known.text) == known.ids);
        CHECK(gpt2.decode(known.ids) == known.text);
    }
    CHECK(gpt2.encode_with_end_of_text("<|endoftext|>") == Ids{50256});
    CHECK(gpt2.encode_with_end_of_text("a<|endoftext|>b") == Ids{64, 50256, 65});
    for (std::int32_t id = 0; id < gpt2.vocabulary_size(); ++id)
        CHECK_FALSE(gpt2.decode(Ids{id}).empty());
}

TEST_CASE("65,537 tokens of prose are those of the reference tokenizer") {
    const auto directory = reference_model("gpt2-124m");
    if (!directory) return;
    const BpeTokenizer gpt2 = BpeTokenizer::from_directory(*directory);
    const std::string text = contents(*directory / "val_text.txt");
    const Ids expected = read_token_shard(*directory / "val_tokens.bin");
    REQUIRE(expected.size() == 65537);
    CHECK(gpt2.encode_with_end_of_text(text) == expected);
    CHECK(gpt2.decode(expected) == text);
}
