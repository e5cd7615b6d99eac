#pragma once
/// @file
/// Text tables whose columns line up in a terminal, also for wide (Chinese) and zero-width
/// characters.

#include <string>
#include <string_view>
#include <vector>

namespace fa {

/// Columns a UTF-8 string takes in a terminal: 2 for East Asian wide characters and emoji, 0 for
/// combining marks and control characters, 1 for the rest (and for each byte that is not valid
/// UTF-8). The widths are the C library's (wcwidth).
std::size_t display_width(std::string_view utf8);

/// Numbers as fmt writes them, with each NaN as "NaN": fmt shows its sign, which means nothing and
/// differs between compilers, as "nan" or "-nan".
std::string with_plain_nan(std::string text);

/// A table of text cells, in which a NaN stands as "NaN" (see with_plain_nan()). The first column
/// is flush left, the others flush right unless said otherwise.
class TextTable {
  public:
    explicit TextTable(std::vector<std::string> headers);

    /// Makes a column flush left. @throws std::out_of_range
    TextTable& left(std::size_t column);

    /// Adds a row. @throws std::invalid_argument if the number of cells is not that of the headers
    void add(std::vector<std::string> cells);

    /// A horizontal rule before the next row.
    void rule();

    /// The whole table, lines ended by '\n', no trailing blanks.
    std::string str() const;

  private:
    std::vector<std::string> headers_;
    std::vector<bool> left_;
    std::vector<std::vector<std::string>> rows_;  // an empty row stands for a rule
};

/// "128 MiB", "1.5 KiB", "17 B": three significant digits, binary units.
std::string human_bytes(double bytes);
/// "1.23 ms", "45.6 us", "2.00 s": three significant digits.
std::string human_seconds(double seconds);
/// "1.23 T", "45.6 GFLOP", "512": three significant digits, decimal prefixes, then the unit.
std::string human_count(double count, std::string_view unit = "");

}  // namespace fa
