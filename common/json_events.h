#pragma once
/// @file
/// Reading JSON of a known form event by event, without building a tree of it.

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace fa {

/// Base of a reader that knows which JSON it wants: every event is refused, and the derived class
/// overrides those that it expects. Against a tree (nlohmann::json::parse) this has three
/// advantages for files that are not to be trusted: memory is only what the reader keeps, nesting
/// deeper than the expected form ends at once, and keys that occur twice are seen instead of
/// silently replaced.
///
/// Refusals leave the parser as exceptions.
class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
  public:
    /// Parses `text`, which must be one JSON value, UTF-8, with nothing but white space after it.
    void parse(std::string_view text) {
        // nlohmann's parser takes a zero byte as the end of its input, whatever stands behind it.
        if (const auto zero = text.find('\0'); zero != std::string_view::npos)
            refuse("is not JSON: zero byte at offset " + std::to_string(zero));
        nlohmann::json::sax_parse(text.begin(), text.end(), this);
    }

    bool null() override { refuse("has an unexpected null"); }
    bool boolean(bool) override { refuse("has an unexpected true or false"); }
    bool number_integer(number_integer_t n) override {
        refuse("has the negative number " + std::to_string(n));
    }
    bool number_unsigned(number_unsigned_t n) override {
        refuse("has the unexpected number " + std::to_string(n));
    }
    bool number_float(number_float_t, const string_t& digits) override {
        refuse("has a number that is no 64-bit integer: " + digits.substr(0, 40));
    }
    bool string(string_t&) override { refuse("has an unexpected string"); }
    bool binary(binary_t&) override { refuse("has unexpected binary data"); }
    bool start_object(std::size_t) override { refuse("has an unexpected object"); }
    bool key(string_t&) override { refuse("has an unexpected key"); }
    bool end_object() override { refuse("has an unexpected end of an object"); }
    bool start_array(std::size_t) override { refuse("has an unexpected array"); }
    bool end_array() override { refuse("has an unexpected end of an array"); }
    bool parse_error(std::size_t position, const std::string&,
                     const nlohmann::detail::exception& error) override {
        // The library's message ends with the text that it read last, which may be megabytes.
        std::string_view reason = error.what();
        reason = reason.substr(0, reason.find("; last read"));
        if (const auto dash = reason.rfind(" - "); dash != std::string_view::npos)
            reason.remove_prefix(dash + 3);
        refuse("is not JSON at byte " + std::to_string(position) + ": " +
               std::string(reason.substr(0, 100)));
    }

  protected:
    /// Which file, and which part of it, the parser is in: the subject of the messages.
    virtual std::string subject() const = 0;

    /// Ends the parsing: "subject what".
    [[noreturn]] void refuse(const std::string& what) const {
        throw std::runtime_error(subject() + " " + what);
    }
};

}  // namespace fa
