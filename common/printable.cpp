#include "common/printable.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <iterator>

namespace fa {

std::string printable(std::string_view text) {
    constexpr std::size_t LONGEST = 80;
    std::string result = "\"";
    for (const char c : text.substr(0, LONGEST)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte > 0x7e || c == '"' || c == '\\')
            fmt::format_to(std::back_inserter(result), "\\x{:02x}", byte);
        else
            result += c;
    }
    result += '"';
    if (text.size() > LONGEST) result += "…";
    return result;
}

std::string printable_lines(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        utf8proc_int32_t code_point = 0;
        const utf8proc_ssize_t length =
            utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                             static_cast<utf8proc_ssize_t>(text.size()), &code_point);
        const bool valid = length > 0;
        const std::string_view character =
            text.substr(0, valid ? static_cast<std::size_t>(length) : 1);
        const bool control = code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0);
        if (valid && (!control || code_point == '\n' || code_point == '\t'))
            result += character;
        else
            for (const char c : character)
                fmt::format_to(std::back_inserter(result), "\\x{:02x}",
                               static_cast<unsigned char>(c));
        text.remove_prefix(character.size());
    }
    return result;
}

}  // namespace fa
