#pragma once
/// @file
/// What the values of flags may be, and lists of them. Every refusal names the flag and the value.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "common/dtype.h"

namespace fa {

/// Wrong usage: exit status 2.
class UsageError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A flag's number must lie in [least, most]. CLI11's own range prints whole numbers with six
/// decimals, limits in full length, and lets NaN pass.
CLI::Validator between(double least, double most);

/// A flag's number must not be below `least`.
CLI::Validator at_least(double least);

/// A flag's number must be above zero.
CLI::Validator above_zero();

/// Refuses what CLI11 2.1 reads in silence: "-1" for an unsigned number as 2^64 − 1, what does not
/// fit as the largest or as infinity, "010" as 8, "nan" and "inf" for a quantity, and empty text.
/// @throws UsageError naming the flag and the text
void check_values(const CLI::App& app);

/// The pieces of a text between its commas, as they stand: "a,,b" has three, "" has one.
std::vector<std::string> split_at_commas(std::string_view text);

/// Parses "512,1024,16k" into integers; "k" and "m" are 1024 and 1024².
/// @throws UsageError naming the flag and the piece, also if a length is not in [least, most]
std::vector<std::int64_t> parse_lengths(const std::string& flag, const std::string& text,
                                        std::int64_t least = 0,
                                        std::int64_t most = std::int64_t{1} << 62);

/// Parses "1,3.5,-inf" into floats. @throws UsageError naming the flag and the piece
std::vector<float> parse_floats(const std::string& flag, const std::string& text);

/// The number as fp32. @throws UsageError naming the flag if it is too large for that, or so small
/// that it would become 0
float as_fp32(const std::string& flag, double number);

/// Parses "fp32", "fp16" or "bf16". @throws UsageError naming the flag and the text
DType parse_dtype(const std::string& flag, const std::string& text);

}  // namespace fa
