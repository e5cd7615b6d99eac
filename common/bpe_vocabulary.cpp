// Reading and checking of GPT-2's vocabulary files.
#include <fmt/format.h>
#include <utf8proc.h>

#include <array>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "common/bpe_tokenizer.h"
#include "common/json_events.h"
#include "common/mapped_file.h"
#include "common/printable.h"

namespace fa {
namespace {

/// Limits that keep a hostile file from claiming much memory; GPT-2 has 50,257 tokens in 1 MB.
constexpr std::size_t MAX_TOKENS = 1u << 19;
constexpr std::size_t MAX_FILE = 16u << 20;

constexpr std::array<const char*, 2> VOCABULARY_NAMES = {"vocab.json", "encoder.json"};
constexpr std::array<const char*, 2> MERGES_NAMES = {"merges.txt", "vocab.bpe"};

/// The files write a byte as a visible character, so that a token has no blanks or controls in it:
/// printable bytes of Latin-1 as themselves, the 68 others as U+0100, U+0101, … in order
/// (bytes_to_unicode() in OpenAI's encoder.py). This table turns a code point back into its byte,
/// or −1.
constexpr std::array<int, 0x144> byte_of_code_point() {
    std::array<int, 0x144> table{};
    for (int& entry : table) entry = -1;
    std::size_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
        const bool visible = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) ||
                             (byte >= 0xae && byte <= 0xff);
        table[visible ? static_cast<std::size_t>(byte) : next++] = byte;
    }
    return table;
}

/// The bytes that `written` stands for; nothing if it holds a character that stands for no byte.
std::optional<std::string> bytes_of(std::string_view written) {
    static constexpr auto BYTE = byte_of_code_point();
    std::string bytes;
    while (!written.empty()) {
        utf8proc_int32_t code_point = 0;
        const utf8proc_ssize_t length =
            utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(written.data()),
                             static_cast<utf8proc_ssize_t>(written.size()), &code_point);
        if (length <= 0 || code_point >= static_cast<utf8proc_int32_t>(BYTE.size())) return {};
        const int byte = BYTE[static_cast<std::size_t>(code_point)];
        if (byte < 0) return {};
        bytes += static_cast<char>(byte);
        written.remove_prefix(static_cast<std::size_t>(length));
    }
    return bytes;
}

/// Reads {token: id, …}.
class VocabularyReader : public JsonEvents {
  public:
    explicit VocabularyReader(const std::string& source) : source_(source) {}

    std::unordered_map<std::string, std::int32_t> ids;

    bool start_object(std::size_t) override {
        if (std::exchange(started_, true)) refuse("has an object as the id of a token");
        return true;
    }
    bool key(string_t& written) override {
        if (ids.size() == MAX_TOKENS) refuse(fmt::format("has more than {} tokens", MAX_TOKENS));
        auto bytes = bytes_of(written);
        if (!bytes || bytes->empty())
            refuse(fmt::format("has token {}, which is not written in GPT-2's byte alphabet",
                               printable(written)));
        const auto [place, is_new] = ids.emplace(std::move(*bytes), 0);
        if (!is_new) refuse(fmt::format("has token {} twice", printable(written)));
        id_ = &place->second;
        return true;
    }
    bool number_unsigned(number_unsigned_t id) override {
        if (id_ == nullptr) refuse("is no object");
        if (id >= MAX_TOKENS)
            refuse(fmt::format("has the id {}, above the limit of {}", id, MAX_TOKENS));
        *id_ = static_cast<std::int32_t>(id);
        return true;
    }
    bool end_object() override { return true; }

  protected:
    std::string subject() const override { return source_ + ": vocabulary"; }

  private:
    const std::string& source_;
    bool started_ = false;
    std::int32_t* id_ = nullptr;  ///< where the next number goes; stable in an unordered_map
};

std::string_view text_of(const MappedFile& file, const std::filesystem::path& path) {
    if (file.bytes().size() > MAX_FILE)
        throw std::runtime_error(
            fmt::format("{}: {} bytes are above the limit of {} for a vocabulary", path.string(),
                        file.bytes().size(), MAX_FILE));
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

/// The first of `names` that is in `directory`, or an empty path.
std::filesystem::path find_in(const std::filesystem::path& directory,
                              std::span<const char* const> names) {
    for (const char* name : names)
        if (std::filesystem::exists(directory / name)) return directory / name;
    return {};
}

}  // namespace

BpeTokenizer BpeTokenizer::from_text(std::string_view vocabulary_json, std::string_view merges,
                                     const std::string& vocabulary_source,
                                     const std::string& merges_source) {
    VocabularyReader vocabulary(vocabulary_source);
    vocabulary.parse(vocabulary_json);
    const auto& ids = vocabulary.ids;
    const auto refuse_vocabulary = [&](const std::string& what) {
        throw std::runtime_error(fmt::format("{}: vocabulary {}", vocabulary_source, what));
    };

    BpeTokenizer result;
    result.token_bytes_.resize(ids.size());
    for (const auto& [bytes, id] : ids) {
        // n distinct ids below n are all of 0…n−1.
        if (static_cast<std::size_t>(id) >= ids.size())
            refuse_vocabulary(fmt::format("has id {} but only {} tokens", id, ids.size()));
        std::string& place = result.token_bytes_[static_cast<std::size_t>(id)];
        if (!place.empty())
            refuse_vocabulary(fmt::format("gives id {} to both {} and {}", id, printable(place),
                                          printable(bytes)));
        place = bytes;
    }
    for (int byte = 0; byte < 256; ++byte) {
        const auto found = ids.find(std::string(1, static_cast<char>(byte)));
        if (found == ids.end()) refuse_vocabulary(fmt::format("lacks a token for byte {}", byte));
        result.byte_ids_[byte] = found->second;
    }
    if (const auto found = ids.find(std::string(END_OF_TEXT)); found != ids.end())
        result.end_of_text_ = found->second;

    std::int32_t rank = 0;
    for (std::size_t line_number = 1; !merges.empty(); ++line_number) {
        const std::size_t line_end = merges.find('\n');
        std::string_view line = merges.substr(0, line_end);
        merges.remove_prefix(line_end == std::string_view::npos ? merges.size() : line_end + 1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        // Only the first line can be a comment: "#" is a token like any other.
        if (line.empty() || (line_number == 1 && line.starts_with("#version"))) continue;

        const auto refuse = [&](const std::string& what) {
            throw std::runtime_error(fmt::format("{}:{}: merge {} {}", merges_source, line_number,
                                                 printable(line), what));
        };
        const std::size_t blank = line.find(' ');
        if (blank == std::string_view::npos || line.find(' ', blank + 1) != std::string_view::npos)
            refuse("is not two tokens with a blank between them");
        const auto id_of = [&](std::optional<std::string> bytes) {
            if (!bytes) refuse("is not written in GPT-2's byte alphabet");
            const auto found = ids.find(*bytes);
            if (found == ids.end())
                refuse(fmt::format("needs the token {}, which the vocabulary lacks",
                                   printable(*bytes)));
            return found->second;
        };
        const auto left = bytes_of(line.substr(0, blank)), right = bytes_of(line.substr(blank + 1));
        const std::uint64_t pair = pair_key(id_of(left), id_of(right));
        if (!result.merges_.emplace(pair, Merge{rank++, id_of(*left + *right)}).second)
            refuse("occurs twice");
    }
    return result;
}

BpeTokenizer::BpeTokenizer(const std::filesystem::path& vocabulary,
                           const std::filesystem::path& merges) {
    const MappedFile vocabulary_file(vocabulary), merges_file(merges);
    *this = from_text(text_of(vocabulary_file, vocabulary), text_of(merges_file, merges),
                      vocabulary.string(), merges.string());
}

bool BpeTokenizer::files_in(const std::filesystem::path& directory) {
    return !find_in(directory, VOCABULARY_NAMES).empty() &&
           !find_in(directory, MERGES_NAMES).empty();
}

BpeTokenizer BpeTokenizer::from_directory(const std::filesystem::path& directory) {
    if (!files_in(directory))
        throw std::runtime_error(
            fmt::format("{}: needs {} and {} for GPT-2's tokenizer", directory.string(),
                        fmt::join(VOCABULARY_NAMES, " or "), fmt::join(MERGES_NAMES, " or ")));
    return {find_in(directory, VOCABULARY_NAMES), find_in(directory, MERGES_NAMES)};
}

}  // namespace fa
