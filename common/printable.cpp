#include "common/printable.h"

#include <fmt/format.h>

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

}  // namespace fa
