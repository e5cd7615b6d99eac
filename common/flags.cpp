#include "common/flags.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <system_error>

namespace fa {
namespace {

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(' ');
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// Splits at commas and parses each piece. @throws UsageError naming flag and piece
template <class T, class Parse>
std::vector<T> parse_list(const std::string& flag, std::string_view text, const char* wanted,
                          Parse parse) {
    std::vector<T> values;
    for (const std::string& untrimmed : split_at_commas(text)) {
        const std::string_view piece = trimmed(untrimmed);
        T value{};
        if (piece.empty() || !parse(piece, value))
            throw UsageError(fmt::format("{}: \"{}\" is not {}", flag, piece, wanted));
        values.push_back(value);
    }
    return values;
}

/// True if all of `text` is one number that fits into T.
template <class T>
bool parse_number(std::string_view text, T& value) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && stop == end;
}

/// "010" is 8 to some readers and 10 to others.
bool has_leading_zero(const std::string& digits) {
    const std::size_t first = digits.starts_with('-') ? 1 : 0;
    return digits.size() > first + 1 && digits[first] == '0';
}

/// A validator that refuses a number for which `fits` does not hold, and says what was wanted.
template <class Fits>
CLI::Validator number_that(Fits fits, std::string wanted) {
    std::string description = wanted;
    return CLI::Validator(
        [fits, wanted = std::move(wanted)](std::string& text) {
            double number = 0;
            // What is no number at all, check_values() refuses for every option.
            if (!parse_number(text, number) || fits(number)) return std::string();
            return fmt::format("must be {}, not {}", wanted, text);
        },
        std::move(description));
}

}  // namespace

CLI::Validator between(double least, double most) {
    return number_that([=](double x) { return x >= least && x <= most; },
                       fmt::format("{:.15g} to {:.15g}", least, most));
}

CLI::Validator at_least(double least) {
    return number_that([=](double x) { return x >= least; },
                       fmt::format("at least {:.15g}", least));
}

CLI::Validator above_zero() {
    return number_that([](double x) { return x > 0; }, "above 0");
}

void check_values(const CLI::App& app) {
    for (const CLI::Option* option : app.get_options()) {
        const std::string type = option->get_type_name();
        for (const std::string& text : option->results()) {
            const auto refuse = [&](const char* reason) {
                throw UsageError(fmt::format("{}: \"{}\" {}", option->get_name(), text, reason));
            };
            if (text.empty()) refuse("is empty");
            std::int64_t integer = 0;
            std::uint64_t natural = 0;
            double real = 0;
            if ((type.starts_with("UINT") &&
                 (!parse_number(text, natural) || has_leading_zero(text))) ||
                (type.starts_with("INT") &&
                 (!parse_number(text, integer) || has_leading_zero(text))))
                refuse("is not a whole number that fits into 64 bits");
            if (type.starts_with("FLOAT") && !parse_number(text, real))
                refuse("is not a number that fits into 64 bits");
            if (type.starts_with("FLOAT") && !std::isfinite(real)) refuse("is not finite");
        }
    }
}

std::vector<std::string> split_at_commas(std::string_view text) {
    std::vector<std::string> pieces;
    while (true) {
        const std::size_t comma = text.find(',');
        pieces.emplace_back(text.substr(0, comma));
        if (comma == std::string_view::npos) return pieces;
        text.remove_prefix(comma + 1);
    }
}

std::vector<std::int64_t> parse_lengths(const std::string& flag, const std::string& text,
                                        std::int64_t least, std::int64_t most) {
    const auto parse = [](std::string_view piece, std::int64_t& value) {
        std::int64_t unit = 1;
        const char last = piece.back();
        if (last == 'k' || last == 'K') unit = 1 << 10;
        if (last == 'm' || last == 'M') unit = 1 << 20;
        if (unit > 1) piece.remove_suffix(1);
        if (!parse_number(piece, value) || value < 0) return false;
        if (value > std::numeric_limits<std::int64_t>::max() / unit) return false;
        value *= unit;
        return true;
    };
    const auto lengths =
        parse_list<std::int64_t>(flag, text, "a length (such as 512 or 16k)", parse);
    for (const std::int64_t length : lengths)
        if (length < least || length > most)
            throw UsageError(
                fmt::format("{}: {} is not between {} and {}", flag, length, least, most));
    return lengths;
}

std::vector<float> parse_floats(const std::string& flag, const std::string& text) {
    return parse_list<float>(flag, text, "a number that fits into fp32", parse_number<float>);
}

float as_fp32(const std::string& flag, double number) {
    if (std::abs(number) > static_cast<double>(std::numeric_limits<float>::max()))
        throw UsageError(fmt::format("{}: {} does not fit into fp32", flag, number));
    const auto narrow = static_cast<float>(number);
    if (narrow == 0 && number != 0)
        throw UsageError(fmt::format("{}: {} is 0 in fp32", flag, number));
    return narrow;
}

DType parse_dtype(const std::string& flag, const std::string& text) {
    if (const auto dtype = dtype_from_name(text)) return *dtype;
    throw UsageError(fmt::format("{}: \"{}\" is none of fp32, fp16, bf16", flag, text));
}

}  // namespace fa
