#pragma once
/// @file
/// The frame of every chapter's program: common flags, one-line errors, checks, results, exit
/// status.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "common/checks.h"
#include "common/flags.h"
#include "common/results.h"

namespace fa {

/// --device: run on the GPU if there is one, or insist on one of the two.
enum class DeviceChoice { automatic, cpu, cuda };

/// Frame of a program. Typical use:
///
/// @code
///   int main(int argc, char** argv) {
///       fa::Program program("ch02_online_softmax", "Softmax in one pass over the scores");
///       std::int64_t block = 2;
///       program.flags().add_option("--block", block, "block size")->check(fa::above_zero());
///       return program.run(argc, argv, [&] {
///           fmt::print("{} scores at a time\n", block);
///           program.checks.at_most("error", measured, 1e-6);
///       });
///   }
/// @endcode
class Program {
  public:
    /// @param name the program's, as its file is called: stands before every error
    /// @param description one sentence for --help
    Program(std::string name, std::string description);

    /// Add the program's own flags here, before run().
    CLI::App& flags() { return app_; }

    /// Parses the flags, runs `body`, prints the checks, writes the JSON file if asked for.
    /// @return 0 if all checks pass; 1 if one fails, there is none, or `body` throws (one line on
    ///         stderr for the last two); 2 for wrong usage (one line on stderr). `body` may throw
    ///         UsageError for values that are wrong together.
    int run(int argc, const char* const* argv, const std::function<void()>& body);

    std::uint64_t seed = 1;                         ///< --seed
    DeviceChoice device = DeviceChoice::automatic;  ///< --device auto|cpu|cuda

    /// Where to run: what --device says, or for "auto" the GPU if there is one that can be used.
    Device where() const;

    std::filesystem::path json;  ///< --json FILE, empty: none
    Checks checks;               ///< printed after the body; decide the exit status
    Results results;             ///< written to --json after the body, also if a check failed

  private:
    CLI::App app_;
    std::string name_;
};

/// Thrown by a body that has nothing more to do, and nothing to check: exit status 0.
struct Finished {};

/// Prints a heading, underlined, with a blank line before it unless it is the first.
void print_heading(const std::string& text);

}  // namespace fa
