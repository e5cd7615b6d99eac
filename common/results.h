#pragma once
/// @file
/// The one JSON shape of every results file: {"context", "rows", "checks"}, plus named extras such
/// as traces. Written whole or not at all.

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/attention.h"
#include "common/checks.h"

namespace fa {

/// Writes `text` to `path` by way of a temporary file in the same folder and a rename, so that a
/// reader, or a program killed half way, never leaves a half-written file.
/// @throws std::runtime_error naming the path and the system's reason
void write_file_atomically(const std::filesystem::path& path, const std::string& text);

/// Finds out whether write_file_atomically() could write there, by making the temporary file and
/// removing it.
/// @throws std::runtime_error as write_file_atomically(), and if `path` is a folder
void check_can_be_written(const std::filesystem::path& path);

/// Machine, compiler, commit, seed and date: what one must know to read a number.
/// Keys: program, machine (CPU model), cores, threads, memory_bytes, os, compiler, build_type,
/// flags, commit, seed, date (ISO 8601, UTC), and gpu, driver, cuda where there is one.
nlohmann::ordered_json run_context(const std::string& program, std::uint64_t seed);

/// One line that a timed table needs beside it: machine, cores, compiler, flags and seed.
/// @param context as run_context() makes it
std::string describe_machine(const nlohmann::ordered_json& context);

/// A number that may not be known: null, then, in JSON.
template <class Number>
nlohmann::ordered_json number_or_null(bool known, Number number) {
    return known ? nlohmann::ordered_json(number) : nlohmann::ordered_json();
}
/// The same for an optional number.
template <class Number>
nlohmann::ordered_json number_or_null(const std::optional<Number>& number) {
    return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json();
}

/// Collects what a program found.
class Results {
  public:
    nlohmann::ordered_json context;
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    /// Further top-level keys. A reference to one lasts until the next is added.
    nlohmann::ordered_json extras = nlohmann::ordered_json::object();

    /// The fields that identify a timed row: implementation, device, the problem's shape, and
    /// direction "forward".
    static nlohmann::ordered_json row(const Implementation& implementation,
                                      const AttentionProblem& problem);

    /// The whole document. NaN and infinity, which JSON lacks, become null.
    std::string str(const Checks& checks) const;
};

}  // namespace fa
