#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "chapters/09_hopper/hunt.h"
#include "common/larger.h"

namespace fa {

HuntBag& HuntBag::operator+=(const HuntBag& other) {
    processes += other.processes;
    failed_processes += other.failed_processes;
    cases += other.cases;
    launches += other.launches;
    delayed_launches += other.delayed_launches;
    graph_launches += other.graph_launches;
    rows += other.rows;
    differing += other.differing;
    wrong += other.wrong;
    worst = larger_or_nan(worst, other.worst);
    if (first_fault.empty()) first_fault = other.first_fault;
    return *this;
}

nlohmann::ordered_json HuntBag::json() const {
    return {{"processes", processes},
            {"failed_processes", failed_processes},
            {"cases", cases},
            {"launches", launches},
            {"delayed_launches", delayed_launches},
            {"graph_launches", graph_launches},
            {"rows", rows},
            {"differing", differing},
            {"wrong", wrong},
            {"worst", worst},
            {"first_fault", first_fault}};
}

HuntBag HuntBag::from_json(const nlohmann::ordered_json& json) {
    HuntBag bag;
    json.at("processes").get_to(bag.processes);
    json.at("failed_processes").get_to(bag.failed_processes);
    json.at("cases").get_to(bag.cases);
    json.at("launches").get_to(bag.launches);
    json.at("delayed_launches").get_to(bag.delayed_launches);
    json.at("graph_launches").get_to(bag.graph_launches);
    json.at("rows").get_to(bag.rows);
    json.at("differing").get_to(bag.differing);
    json.at("wrong").get_to(bag.wrong);
    const auto& worst = json.at("worst");  // null: NaN, which JSON lacks
    bag.worst = worst.is_null() ? std::numeric_limits<double>::quiet_NaN() : worst.get<double>();
    json.at("first_fault").get_to(bag.first_fault);
    return bag;
}

void report_hunt(Program& program, const HuntBag& bag) {
    fmt::print(
        "{} cases, {} launches, {} of them delayed and {} from graphs; {} rows against fp64.\n",
        bag.cases, bag.launches, bag.delayed_launches, bag.graph_launches, bag.rows);
    if (!bag.first_fault.empty()) fmt::print("The first fault: {}\n", bag.first_fault);
    program.results.extras["hunt"] = bag.json();
    const auto count = [](std::int64_t n) { return static_cast<double>(n); };
    program.checks.at_least("cases", count(bag.cases), 1);
    program.checks.equal("processes that hung, crashed or found something",
                         count(bag.failed_processes), 0);
    program.checks.equal("cases whose launches gave different bits", count(bag.differing), 0);
    program.checks.equal("rows beyond their bound", count(bag.wrong), 0);
    program.checks.at_most("largest error over its bound", bag.worst, 1);
}

}  // namespace fa
