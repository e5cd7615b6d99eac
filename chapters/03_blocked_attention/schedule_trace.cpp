#include "chapters/03_blocked_attention/schedule_trace.h"

#include <fmt/format.h>

#include <algorithm>

namespace fa {

std::string_view name_of(TileKind kind) {
    switch (kind) {
        case TileKind::full: return "full";
        case TileKind::diagonal: return "diagonal";
        case TileKind::skipped: return "skipped";
    }
    return "?";
}

void ScheduleTrace::loaded(Operand operand, std::int64_t block, std::int64_t bytes) {
    steps_.push_back(
        {.what = Step::What::load, .operand = operand, .block = block, .bytes = bytes});
}

void ScheduleTrace::stored(Operand operand, std::int64_t block, std::int64_t bytes) {
    steps_.push_back(
        {.what = Step::What::store, .operand = operand, .block = block, .bytes = bytes});
}

void ScheduleTrace::tile(std::int64_t q_block, std::int64_t kv_block, TileKind kind) {
    steps_.push_back(
        {.what = Step::What::tile, .block = q_block, .kv_block = kv_block, .kind = kind});
}

nlohmann::ordered_json ScheduleTrace::json() const {
    auto list = nlohmann::ordered_json::array();
    for (const Step& step : steps_) {
        nlohmann::ordered_json entry;
        if (step.what == Step::What::tile) {
            entry["tile"] = name_of(step.kind);
            entry["q"] = step.block;
            entry["kv"] = step.kv_block;
        } else {
            entry[step.what == Step::What::load ? "load" : "store"] = name_of(step.operand);
            entry["block"] = step.block;
            entry["bytes"] = step.bytes;
        }
        list.push_back(std::move(entry));
    }
    return list;
}

std::vector<std::string> ScheduleTrace::drawing() const {
    constexpr std::size_t CELL = 5;
    std::vector<std::string> lines;
    int turn = 0;
    for (const Step& step : steps_) {
        if (step.what != Step::What::tile) continue;
        std::string cell = ".";
        if (step.kind == TileKind::full) cell = fmt::format("{}", ++turn);
        if (step.kind == TileKind::diagonal) cell = fmt::format("[{}]", ++turn);

        const auto row = static_cast<std::size_t>(step.block);
        const auto end = (static_cast<std::size_t>(step.kv_block) + 1) * CELL;
        lines.resize(std::max(lines.size(), row + 1));
        lines[row].resize(std::max(lines[row].size(), end), ' ');
        // Digits line up, with or without a closing bracket.
        const std::size_t at = end - cell.size() - (step.kind == TileKind::diagonal ? 0 : 1);
        lines[row].replace(at, cell.size(), cell);
    }
    return lines;
}

}  // namespace fa
