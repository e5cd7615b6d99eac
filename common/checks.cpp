#include "common/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/text_table.h"

namespace fa {
namespace {

/// Both numbers with as few digits as show the difference between them, three at least: a measured
/// 1.0004e-06 must not read as "1e-06" beside a goal of 1e-06.
std::pair<std::string, std::string> digits_that_differ(double measured, double goal) {
    for (int digits = 3; digits < 17; ++digits) {
        const std::string a = fmt::format("{:.{}g}", measured, digits);
        const std::string b = fmt::format("{:.{}g}", goal, digits);
        if (a != b || measured == goal) return {a, b};
    }
    return {fmt::format("{}", measured), fmt::format("{}", goal)};
}

}  // namespace

void Checks::at_most(std::string name, double measured, double bound) {
    const auto [shown, goal] = digits_that_differ(measured, bound);
    that(std::move(name), "<= " + goal, shown, measured <= bound);
}

void Checks::at_least(std::string name, double measured, double bound) {
    const auto [shown, goal] = digits_that_differ(measured, bound);
    that(std::move(name), ">= " + goal, shown, measured >= bound);
}

void Checks::equal(std::string name, double measured, double expected) {
    // Shortest digits that read back as the same number: equal texts mean equal numbers.
    that(std::move(name), fmt::format("= {}", expected), fmt::format("{}", measured),
         measured == expected);
}

void Checks::that(std::string name, std::string goal, std::string measured, bool pass) {
    list_.push_back({std::move(name), with_plain_nan(std::move(goal)),
                     with_plain_nan(std::move(measured)), pass});
}

bool Checks::all_pass() const {
    return !list_.empty() && std::ranges::all_of(list_, &Check::pass);
}

std::string Checks::str() const {
    TextTable table({"check", "goal", "measured", "result"});
    for (const Check& check : list_)
        table.add({check.name, check.goal, check.measured, check.pass ? "pass" : "FAIL"});
    return table.str();
}

}  // namespace fa
