#include <fmt/format.h>

#include "chapters/03_blocked_attention/experiments.h"
#include "chapters/03_blocked_attention/schedule_trace.h"
#include "chapters/03_blocked_attention/traffic.h"
#include "common/attention_data.h"

namespace fa {
namespace {

nlohmann::ordered_json with_problem(const AttentionProblem& p, Schedule schedule, TileSize tiles,
                                    const ScheduleTrace& trace) {
    nlohmann::ordered_json json;
    json["schedule"] = name_of(schedule);
    json["len_q"] = p.len_q;
    json["len_kv"] = p.len_kv;
    json["head_dim"] = p.head_dim;
    json["causal"] = p.causal;
    json["block_q"] = tiles.q;
    json["block_kv"] = tiles.kv;
    json["steps"] = trace.json();
    return json;
}

}  // namespace

void show_scan(Program& program, const Options&) {
    constexpr std::int64_t BLOCKS = 8;
    const TileSize tiles{.q = 16, .kv = 16};
    const AttentionProblem p{
        .len_q = BLOCKS * tiles.q, .len_kv = BLOCKS * tiles.kv, .head_dim = 64, .causal = true};
    AttentionData<float> data(p, program.seed);

    print_heading(
        fmt::format("The scan: {} blocks of queries, {} of keys, causal", BLOCKS, BLOCKS));
    fmt::print(
        "A row is a block of queries, a column a block of keys. The number says when the tile\n"
        "is visited; [n] is on the diagonal and gets the mask; a dot is never loaded.\n\n");
    ScheduleTrace kv_outer, q_outer;
    run_schedule(Schedule::kv_outer, p, data.tensors(), tiles, &kv_outer);
    run_schedule(Schedule::q_outer, p, data.tensors(), tiles, &q_outer);
    const auto left = kv_outer.drawing(), right = q_outer.drawing();
    fmt::print("K/V outside (FlashAttention)                 Q outside (FlashAttention-2)\n");
    for (std::size_t i = 0; i < left.size(); ++i) {
        const std::string line = fmt::format("{}     {}", left[i], right[i]);
        fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
    }

    auto traces = nlohmann::ordered_json::array();
    traces.push_back(with_problem(p, Schedule::kv_outer, tiles, kv_outer));
    traces.push_back(with_problem(p, Schedule::q_outer, tiles, q_outer));
    program.results.extras["traces"] = std::move(traces);

    TrafficCounter counter;
    run_schedule(Schedule::q_outer, p, data.tensors(), tiles, &counter);
    const auto full = static_cast<double>(counter.tiles(TileKind::full));
    const auto diagonal = static_cast<double>(counter.tiles(TileKind::diagonal));
    const auto skipped = static_cast<double>(counter.tiles(TileKind::skipped));
    fmt::print(
        "\n{} tiles are computed whole, {} on the diagonal are masked, {} of {} are skipped.\n",
        full, diagonal, skipped, full + diagonal + skipped);
    program.checks.equal("tiles on the diagonal", diagonal, BLOCKS);
    program.checks.equal("tiles skipped", skipped, BLOCKS * (BLOCKS - 1) / 2.0);
}

}  // namespace fa
