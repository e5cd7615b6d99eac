#include "chapters/06_benchmark/benchmark_flags.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <regex>
#include <set>

#include "common/flags.h"
#include "common/results.h"

namespace fa {
namespace {

constexpr std::string_view OUT = "--benchmark_out", MIN_TIME = "--benchmark_min_time",
                           FILTER = "--benchmark_filter", FORMAT = "--benchmark_format",
                           REPETITIONS = "--benchmark_repetitions";
constexpr int MOST_REPETITIONS = 1000;

const std::set<std::string_view> ON{"true", "1", "yes", "on"}, OFF{"false", "0", "no", "off"};

/// A flag in two: what stands before "=", and what behind it if there is one.
struct Parts {
    std::string_view name;
    std::optional<std::string_view> value;
};

Parts parts_of(std::string_view flag) {
    const std::size_t equals = flag.find('=');
    if (equals == std::string_view::npos) return {flag, std::nullopt};
    return {flag.substr(0, equals), flag.substr(equals + 1)};
}

template <class T>
bool is_number(std::string_view text, double least, double most) {
    T value{};
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && stop == end && static_cast<double>(value) >= least &&
           static_cast<double>(value) <= most;
}

/// Version 1.8 brought SkipWithMessage(), and units of the least time: "0.01s", "5x".
template <class State>
constexpr bool since_1_8() {
    return requires(State & state) {
        state.SkipWithMessage("");
    };
}

bool is_least_time(std::string_view text) {
    if (since_1_8<benchmark::State>() && text.ends_with('x'))
        return is_number<std::int64_t>(text.substr(0, text.size() - 1), 1, 1e9);
    if (text.ends_with('s')) text.remove_suffix(1);
    return is_number<double>(text, 0, 1e6);
}

/// A filter is a regular expression as POSIX extends it; behind "-" it says what is left out.
std::regex filter_of(std::string_view text) {
    if (text.starts_with('-')) text.remove_prefix(1);
    return std::regex(std::string(text), std::regex::extended | std::regex::nosubs);
}

bool is_filter(std::string_view text) {
    try {
        filter_of(text);
        return true;
    } catch (const std::regex_error&) {
        return false;
    }
}

/// What a flag's value must be.
struct Rule {
    std::string_view name;
    std::string_view wanted;  ///< in words
    bool (*fits)(std::string_view);
    bool may_lack = false;  ///< without a value it is switched on
};

bool is_switch(std::string_view text) {
    return ON.contains(text) || OFF.contains(text);
}

// [rules]
/// The flags that the library judges late, in several lines, or not at all. Of all others it says
/// itself at once that it does not know them.
constexpr std::array RULES{
    Rule{"--benchmark_list_tests", "true or false", is_switch, true},
    Rule{"--benchmark_enable_random_interleaving", "true or false", is_switch, true},
    Rule{"--benchmark_report_aggregates_only", "true or false", is_switch, true},
    Rule{"--benchmark_display_aggregates_only", "true or false", is_switch, true},
    Rule{"--benchmark_counters_tabular", "true or false", is_switch, true},
    Rule{"--benchmark_color", "true, false or auto",
         [](std::string_view text) { return text == "auto" || is_switch(text); }, true},
    Rule{FORMAT,
         "console (--benchmark_out=FILE with --benchmark_out_format=json or csv writes a report)",
         [](std::string_view text) { return text == "console"; }},
    Rule{
        "--benchmark_out_format", "console, json or csv",
        [](std::string_view text) { return text == "console" || text == "json" || text == "csv"; }},
    Rule{"--benchmark_time_unit", "ns, us, ms or s",
         [](std::string_view text) {
             return text == "ns" || text == "us" || text == "ms" || text == "s";
         }},
    Rule{OUT, "the name of a file", [](std::string_view text) { return !text.empty(); }},
    Rule{FILTER, "a regular expression", is_filter},
    Rule{MIN_TIME, "seconds from 0 to 1000000, such as 0.01 or 0.01s", is_least_time},
    Rule{"--benchmark_min_warmup_time", "seconds from 0 to 1000000",
         [](std::string_view text) { return is_number<double>(text, 0, 1e6); }},
    Rule{REPETITIONS, "a whole number from 1 to 1000",
         [](std::string_view text) { return is_number<int>(text, 1, MOST_REPETITIONS); }},
    Rule{"--benchmark_v", "a whole number from 0 to 10",
         [](std::string_view text) { return is_number<int>(text, 0, 10); }},
};
// [rules]

void judge(std::string_view flag) {
    const auto [name, value] = parts_of(flag);
    const auto rule = std::ranges::find(RULES, name, &Rule::name);
    if (rule == RULES.end()) return;
    if (value ? !rule->fits(*value) : !rule->may_lack)
        throw UsageError(
            fmt::format("{}: must be {}, {}", name, rule->wanted,
                        value ? fmt::format("not \"{}\"", *value) : "and has no value"));
    if (name != OUT) return;
    try {
        check_can_be_written(*value);
    } catch (const std::runtime_error& error) {
        throw std::runtime_error(fmt::format("{}: {}", OUT, error.what()));
    }
}

}  // namespace

BenchmarkFlags::BenchmarkFlags(std::vector<std::string> given) : flags_(std::move(given)) {
    std::ranges::for_each(flags_, judge);
}

bool BenchmarkFlags::has(std::string_view name) const {
    return std::ranges::any_of(flags_, [&](const auto& f) { return parts_of(f).name == name; });
}

std::string BenchmarkFlags::value_of(std::string_view name) const {
    std::string last;
    for (const std::string& flag : flags_)
        if (const auto [found, value] = parts_of(flag); found == name)
            last = value.value_or("true");
    return last;
}

bool BenchmarkFlags::switched_on(std::string_view name) const {
    return ON.contains(value_of(name));
}

bool BenchmarkFlags::takes(const std::string& row_name) const {
    const std::string filter = value_of(FILTER);
    if (filter.empty() || filter == "all") return true;
    return std::regex_search(row_name, filter_of(filter)) != filter.starts_with('-');
}

void BenchmarkFlags::initialize(int repetitions) const {
    std::vector<std::string> flags = flags_;
    // Enough for a stable mean of short kernels; a long one runs once in each repetition.
    if (!has(MIN_TIME)) flags.push_back(fmt::format("{}=0.01", MIN_TIME));
    for (std::string& flag : flags) {
        if (parts_of(flag).name != MIN_TIME) continue;
        if (flag.ends_with('s')) flag.pop_back();
        if (since_1_8<benchmark::State>() && !flag.ends_with('x')) flag += 's';
    }
    if (!has(REPETITIONS)) flags.push_back(fmt::format("{}={}", REPETITIONS, repetitions));

    static std::string name = "ch06_benchmark";  // Google Benchmark keeps the pointer
    std::vector<char*> arguments{name.data()};
    for (std::string& flag : flags) arguments.push_back(flag.data());
    int count = static_cast<int>(arguments.size());
    benchmark::Initialize(&count, arguments.data());
    if (count > 1)
        throw UsageError(fmt::format(
            "{}: Google Benchmark has no such flag, or not with that value", arguments[1]));
}

}  // namespace fa
