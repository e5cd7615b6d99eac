#pragma once
/// @file
/// Google Benchmark's own flags, judged before any work. The library by itself looks at some of
/// them only when the measurements begin, at others not at all, and ends the program as it likes.

#include <string>
#include <string_view>
#include <vector>

namespace fa {

/// The flags "--benchmark_…" of a program, each right by itself.
class BenchmarkFlags {
  public:
    /// @param given as on the command line
    /// @throws UsageError naming the flag and its value if the library would not do what it says;
    ///         std::runtime_error if --benchmark_out cannot be written
    explicit BenchmarkFlags(std::vector<std::string> given);

    /// True if the flag is there, with a value or without.
    bool has(std::string_view name) const;
    /// True if the flag is there and switched on; the last one counts.
    bool switched_on(std::string_view name) const;
    /// Whether --benchmark_filter takes a row of this name; without that flag all are taken.
    bool takes(const std::string& row_name) const;

    /// Hands them to Google Benchmark, with a minimal time and repetitions unless they are there.
    /// @throws UsageError for a flag that the library does not know
    void initialize(int repetitions) const;

  private:
    std::string value_of(std::string_view name) const;
    std::vector<std::string> flags_;
};

}  // namespace fa
