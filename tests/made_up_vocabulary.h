#pragma once
/// @file
/// Small vocabularies in GPT-2's file format, for tests that need none of GPT-2's own files.

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fa::testing {

/// Tokens, ids and merges, to be written as the two files of a tokenizer. At first it holds the 256
/// bytes, ids in the order of the byte values.
struct MadeUpVocabulary {
    std::map<std::string, std::int32_t> ids;                  ///< bytes of the token -> id
    std::vector<std::pair<std::string, std::string>> merges;  ///< in order of rank

    MadeUpVocabulary() {
        for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
    }

    /// Gives `token` the next id if it has none.
    void add(const std::string& token) {
        ids.emplace(token, static_cast<std::int32_t>(ids.size()));
    }

    /// Adds a merge, of the next rank, and the token that it makes.
    void merge(const std::string& left, const std::string& right) {
        add(left + right);
        merges.emplace_back(left, right);
    }

    /// The contents of vocab.json.
    std::string json() const {
        std::string text = "{";
        for (const auto& [token, id] : ids) {
            text += text.size() > 1 ? ",\"" : "\"";
            for (const char c : written(token)) {
                if (c == '"' || c == '\\') text += '\\';
                text += c;
            }
            text += fmt::format("\":{}", id);
        }
        return text + "}";
    }

    /// The contents of merges.txt.
    std::string merge_lines() const {
        std::string text = "#version: 0.2\n";
        for (const auto& [left, right] : merges)
            text += fmt::format("{} {}\n", written(left), written(right));
        return text;
    }

    /// Bytes in the alphabet of GPT-2's files: printable Latin-1 as itself, each other byte as the
    /// next character from U+0100 on.
    static std::string written(std::string_view bytes) {
        std::string text;
        for (const char c : bytes) {
            const auto byte = static_cast<unsigned char>(c);
            unsigned code_point = byte;
            if (!visible(byte)) {
                code_point = 0x100;
                for (unsigned b = 0; b < byte; ++b) code_point += visible(b) ? 0 : 1;
            }
            if (code_point < 0x80) {
                text += static_cast<char>(code_point);
            } else {
                text += static_cast<char>(0xc0 | (code_point >> 6));
                text += static_cast<char>(0x80 | (code_point & 0x3f));
            }
        }
        return text;
    }

  private:
    static bool visible(unsigned byte) {
        return (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
    }
};

}  // namespace fa::testing
