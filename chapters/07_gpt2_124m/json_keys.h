#pragma once
/// @file
/// The keys of a JSON object that somebody else wrote, read with checks: every refusal names the
/// file, the key, what it is, and what it should be.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fa {

/// An object and where it comes from. A key that is null counts as missing.
class JsonKeys {
  public:
    /// @param text   of the whole file
    /// @param source what to call it in messages
    /// @throws std::runtime_error if the text is no JSON object
    JsonKeys(std::string_view text, std::string source);

    /// True if the key is there and not null.
    bool has(const char* key) const;

    /// @throws std::runtime_error naming source, key and value, and `why`
    [[noreturn]] void refuse(const char* key, const std::string& why) const;

    /// A whole number from 1 to `most`. @throws std::runtime_error, also if it is missing
    std::int64_t count(const char* key, std::int64_t most) const;
    /// The same, or `otherwise` if it is missing. @throws std::runtime_error
    std::int64_t count(const char* key, std::int64_t most, std::int64_t otherwise) const;
    /// True or false, `otherwise` if it is missing. @throws std::runtime_error
    bool flag(const char* key, bool otherwise) const;
    /// Text. @throws std::runtime_error, also if it is missing
    std::string text(const char* key) const;
    /// The same, or `otherwise` if it is missing. @throws std::runtime_error
    std::string text(const char* key, const std::string& otherwise) const;
    /// A number, if it is there. @throws std::runtime_error
    std::optional<double> number(const char* key) const;
    /// A list of numbers. @throws std::runtime_error, also if it is missing
    std::vector<double> numbers(const char* key) const;
    /// A list of whole numbers from 0 to `most`. @throws std::runtime_error, also if it is missing
    std::vector<std::int32_t> ids(const char* key, std::int32_t most) const;
    /// The object under a key, if it is there. @throws std::runtime_error
    std::optional<JsonKeys> object(const char* key) const;

  private:
    JsonKeys(nlohmann::json json, std::string source);
    const nlohmann::json& at(const char* key) const;
    const nlohmann::json& list(const char* key, const char* of) const;
    [[noreturn]] void refuse_value(const std::string& where, const nlohmann::json& value,
                                   const std::string& why) const;

    nlohmann::json json_;
    std::string source_;
};

}  // namespace fa
