// GPT-2's pattern for cutting text into pieces, as a scanner.
//
// A regular-expression library could run the pattern itself, but would add three troubles: which
// characters are \s differs from library to library, malformed UTF-8 stops the match or is
// undefined, and backtracking over a megabyte-long word takes a megabyte-deep stack. The pattern
// needs none of that: the class of the first character decides which alternative matches.
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/bpe_tokenizer.h"

namespace fa {
namespace {

enum class Class : std::uint8_t { space, letter, number, other, end };

/// The class of one character and how many bytes it takes (0 at the end of the text).
struct Character {
    Class kind;
    std::size_t bytes;
};

Class class_of(utf8proc_int32_t code_point) {
    switch (utf8proc_category(code_point)) {
        case UTF8PROC_CATEGORY_LU:
        case UTF8PROC_CATEGORY_LL:
        case UTF8PROC_CATEGORY_LT:
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_LO: return Class::letter;
        case UTF8PROC_CATEGORY_ND:
        case UTF8PROC_CATEGORY_NL:
        case UTF8PROC_CATEGORY_NO: return Class::number;
        // Unicode's White_Space property: all separators, and six of the controls.
        case UTF8PROC_CATEGORY_ZS:
        case UTF8PROC_CATEGORY_ZL:
        case UTF8PROC_CATEGORY_ZP: return Class::space;
        default:
            return (code_point >= 0x09 && code_point <= 0x0d) || code_point == 0x85 ? Class::space
                                                                                    : Class::other;
    }
}

Character character_at(std::string_view text, std::size_t position) {
    if (position == text.size()) return {Class::end, 0};
    // No character is longer than four bytes; utf8proc counts in a signed type.
    const auto left = std::min<std::size_t>(4, text.size() - position);
    utf8proc_int32_t code_point = 0;
    const utf8proc_ssize_t bytes =
        utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + position,
                         static_cast<utf8proc_ssize_t>(left), &code_point);
    if (bytes <= 0) return {Class::other, 1};  // malformed: the byte stands for itself
    return {class_of(code_point), static_cast<std::size_t>(bytes)};
}

/// End of the run of characters of class `kind` that starts at `position`.
std::size_t run_end(std::string_view text, std::size_t position, Class kind) {
    for (;;) {
        const Character c = character_at(text, position);
        if (c.kind != kind) return position;
        position += c.bytes;
    }
}

/// Length of the piece at the start of `text`, which is not empty.
std::size_t piece_length(std::string_view text) {
    // 's|'t|'re|'ve|'m|'ll|'d
    static constexpr std::array<std::string_view, 7> CONTRACTIONS = {"'s", "'t",  "'re", "'ve",
                                                                     "'m", "'ll", "'d"};
    for (const std::string_view contraction : CONTRACTIONS)
        if (text.starts_with(contraction)) return contraction.size();

    //  ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+
    const std::size_t after_blank = text[0] == ' ' ? 1 : 0;
    const Class kind = character_at(text, after_blank).kind;
    if (kind == Class::letter || kind == Class::number || kind == Class::other)
        return run_end(text, after_blank, kind);

    // \s+(?!\S): white space up to, but not including, the last one before something else. That one
    // is left to go with the next word if it is a blank, or to stand alone: \s+
    std::size_t end = 0, last = 0;
    for (Character c = character_at(text, 0); c.kind == Class::space; c = character_at(text, end)) {
        last = end;
        end += c.bytes;
    }
    return end == text.size() || last == 0 ? end : last;
}

}  // namespace

std::vector<std::string_view> gpt2_pieces(std::string_view text) {
    std::vector<std::string_view> pieces;
    while (!text.empty()) {
        const std::size_t length = piece_length(text);
        pieces.push_back(text.substr(0, length));
        text.remove_prefix(length);
    }
    return pieces;
}

}  // namespace fa
