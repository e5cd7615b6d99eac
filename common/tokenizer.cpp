#include "common/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace fa {

std::vector<std::int32_t> ByteTokenizer::encode(std::string_view text) const {
    std::vector<std::int32_t> tokens(text.size());
    std::transform(text.begin(), text.end(), tokens.begin(),
                   [](char c) { return std::int32_t{static_cast<unsigned char>(c)}; });
    return tokens;
}

std::string ByteTokenizer::decode(std::span<const std::int32_t> tokens) const {
    std::string text(tokens.size(), '\0');
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (tokens[i] < 0 || tokens[i] > 255)
            throw std::out_of_range(
                fmt::format("token {} is id {}, the vocabulary has ids 0 to 255", i, tokens[i]));
        text[i] = static_cast<char>(tokens[i]);
    }
    return text;
}

}  // namespace fa
