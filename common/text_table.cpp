#include "common/text_table.h"

#include <fmt/format.h>
#include <locale.h>  // newlocale, uselocale: POSIX, not in <clocale>
#include <wchar.h>   // wcwidth

#include <algorithm>
#include <array>
#include <cmath>
#include <cwchar>
#include <span>
#include <stdexcept>
#include <utility>

namespace fa {
namespace {

/// Switches this thread to a UTF-8 character set for the length of a scope: the C library's table
/// of character widths follows the locale, and a program starts in the plain "C" locale.
class Utf8Scope {
  public:
    Utf8Scope() : previous_(uselocale(utf8())) {}
    ~Utf8Scope() { uselocale(previous_); }
    Utf8Scope(const Utf8Scope&) = delete;
    Utf8Scope& operator=(const Utf8Scope&) = delete;

  private:
    static locale_t utf8() {
        static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", locale_t{});
        return locale;  // null, where the system has no such locale, leaves the present one
    }
    locale_t previous_;
};

std::string blanks(std::size_t count) {
    return std::string(count, ' ');
}

/// One line of cells, each padded to its column's width, two blanks between columns.
std::string line_of(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                    const std::vector<bool>& left) {
    std::string line;
    for (std::size_t c = 0; c < cells.size(); ++c) {
        const std::string padding = blanks(widths[c] - display_width(cells[c]));
        if (c > 0) line += "  ";
        line += left[c] ? cells[c] + padding : padding + cells[c];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line + '\n';
}

/// Digits after the point that make three significant digits of `x` >= 0.
int decimals_of(double x) {
    return x == 0 ? 0 : std::max(0, 2 - static_cast<int>(std::floor(std::log10(x))));
}

double rounded(double x) {
    const double step = std::pow(10.0, decimals_of(x));
    return std::round(x * step) / step;
}

/// Three significant digits in the largest unit that leaves at least 1; the rounding itself may
/// carry over into the next unit (999.9 kB is 1.00 MB). Numbers from 1000 up to `base`, which only
/// units of 1024 leave, keep their four digits.
std::string in_units(double value, double base, std::span<const std::string_view> units,
                     bool keep_zeros) {
    if (!std::isfinite(value)) return with_plain_nan(fmt::format("{}", value));
    std::size_t unit = 0;
    double magnitude = std::abs(value);
    while (rounded(magnitude) >= base && unit + 1 < units.size()) {
        magnitude /= base;
        ++unit;
    }
    magnitude = rounded(magnitude);
    std::string digits = fmt::format("{:.{}f}", magnitude, decimals_of(magnitude));
    if (!keep_zeros && digits.find('.') != std::string::npos) {
        digits.erase(digits.find_last_not_of('0') + 1);
        if (digits.back() == '.') digits.pop_back();
    }
    return fmt::format("{}{} {}", value < 0 ? "-" : "", digits, units[unit]);
}

}  // namespace

std::size_t display_width(std::string_view utf8) {
    const Utf8Scope scope;
    std::size_t columns = 0;
    std::mbstate_t state{};
    for (std::size_t at = 0; at < utf8.size();) {
        wchar_t character = 0;
        const std::size_t length =
            std::mbrtowc(&character, utf8.data() + at, utf8.size() - at, &state);
        if (length > utf8.size() - at) {  // (size_t)-1 or -2: not UTF-8, or cut off at the end
            state = {};
            ++columns;
            ++at;
            continue;
        }
        if (const int width = wcwidth(character); width > 0)
            columns += static_cast<std::size_t>(width);
        at += std::max<std::size_t>(length, 1);  // length 0: the character U+0000, one byte
    }
    return columns;
}

std::string with_plain_nan(std::string text) {
    const auto is_word = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '_';
    };
    for (std::size_t at = 0; (at = text.find("nan", at)) != std::string::npos;) {
        const bool sign = at > 0 && (text[at - 1] == '-' || text[at - 1] == '+');
        const std::size_t first = at - (sign ? 1 : 0), end = at + 3;
        const bool times = end < text.size() && text[end] == 'x';  // "nanx": so many times
        const std::size_t after = end + (times ? 1 : 0);
        const bool alone = (first == 0 || !is_word(text[first - 1])) &&
                           (after == text.size() || !is_word(text[after]));
        if (alone) text.replace(first, end - first, "NaN");
        at = alone ? first + 3 : end;
    }
    return text;
}

TextTable::TextTable(std::vector<std::string> headers)
    : headers_(std::move(headers)), left_(headers_.size(), false) {
    if (!left_.empty()) left_[0] = true;
}

TextTable& TextTable::left(std::size_t column) {
    left_.at(column) = true;
    return *this;
}

void TextTable::add(std::vector<std::string> cells) {
    if (cells.size() != headers_.size())
        throw std::invalid_argument(fmt::format("text table: a row of {} cells under {} headers",
                                                cells.size(), headers_.size()));
    for (std::string& cell : cells) cell = with_plain_nan(std::move(cell));
    rows_.push_back(std::move(cells));
}

void TextTable::rule() {
    rows_.emplace_back();
}

std::string TextTable::str() const {
    if (headers_.empty()) return "";
    std::vector<std::size_t> widths;
    for (const std::string& header : headers_) widths.push_back(display_width(header));
    for (const auto& row : rows_)
        for (std::size_t c = 0; c < row.size(); ++c)
            widths[c] = std::max(widths[c], display_width(row[c]));

    std::vector<std::string> dashes;
    for (const std::size_t width : widths) dashes.emplace_back(width, '-');
    std::string text = line_of(headers_, widths, left_) + line_of(dashes, widths, left_);
    for (const auto& row : rows_) text += line_of(row.empty() ? dashes : row, widths, left_);
    return text;
}

std::string human_bytes(double bytes) {
    static constexpr std::array<std::string_view, 7> UNITS{"B",   "KiB", "MiB", "GiB",
                                                           "TiB", "PiB", "EiB"};
    return in_units(bytes, 1024, UNITS, false);
}

std::string human_seconds(double seconds) {
    static constexpr std::array<std::string_view, 4> UNITS{"ns", "us", "ms", "s"};
    return seconds == 0 ? "0 s" : in_units(seconds * 1e9, 1000, UNITS, true);
}

std::string human_count(double count, std::string_view unit) {
    static constexpr std::array<std::string_view, 7> PREFIXES{"", "k", "M", "G", "T", "P", "E"};
    std::string text = in_units(count, 1000, PREFIXES, std::abs(count) >= 999.5);
    text += unit;
    text.erase(text.find_last_not_of(' ') + 1);  // no prefix and no unit: the number alone
    return text;
}

}  // namespace fa
