#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "chapters/09_hopper/counted_steps.h"
#include "chapters/09_hopper/timeline.h"
#include "common/text_table.h"
#ifdef FA_HOPPER_ENABLED
#include "chapters/09_hopper/ablations.h"
#endif

namespace fa {
namespace {

constexpr TracePhase PHASES[] = {TracePhase::wait_keys, TracePhase::wait_turn, TracePhase::products,
                                 TracePhase::softmax,   TracePhase::wait_sum,  TracePhase::correct,
                                 TracePhase::finish,    TracePhase::end};

/// Whether the events of each warpgroup follow each other without a gap.
bool complete(const TracedSchedule& schedule) {
    for (std::size_t i = 1; i < schedule.events.size(); ++i) {
        const TimelineEvent &a = schedule.events[i - 1], &b = schedule.events[i];
        if (a.block == b.block && a.warpgroup == b.warpgroup && a.end != b.begin) return false;
    }
    return !schedule.events.empty();
}

}  // namespace

void show_timeline(Program& program, const HopperOptions& options) {
    const bool gpu = hopper_is_here(program);
    print_heading(gpu ? "What the warpgroups do when, measured"
                      : "What the warpgroups do when, in turns of the executor");
    AttentionProblem p = counted_problem(options, 2);
    std::vector<TracedSchedule> traced;
#ifdef FA_HOPPER_ENABLED
    if (gpu) {
        p = options.shape;
        p.dtype = DType::bf16;
        p.head_dim = 64;
        p.len_q = p.len_kv = options.traced_length;
        traced = trace_on_gpu(p, program.seed, /*blocks=*/1, /*capacity=*/512);
    }
#endif
    if (!gpu) traced = trace_on_executor(p, program.seed, /*blocks=*/1, /*capacity=*/1024);
    fmt::print("{}: which share of their clocks the warpgroups of block 0\nspend with what.\n\n",
               describe(p));
    std::vector<std::string> headers{"phase"};
    for (const TracedSchedule& schedule : traced) headers.push_back(schedule.name);
    TextTable table(headers);
    for (const TracePhase phase : PHASES) {
        std::vector<std::string> cells{std::string(name_of(phase))};
        for (const TracedSchedule& schedule : traced)
            cells.push_back(fmt::format("{:.1f} %", 100 * phase_shares(schedule.events)[phase]));
        table.add(cells);
    }
    table.rule();
    std::vector<std::string> tiles{"tiles"};
    for (const TracedSchedule& schedule : traced) {
        std::set<std::pair<int, int>> seen;
        for (const TimelineEvent& e : schedule.events) seen.insert({e.block, e.tile});
        tiles.push_back(fmt::format("{}", seen.size()));
    }
    table.add(tiles);
    fmt::print("{}", table.str());
    fmt::print("\n{}\n",
               gpu ? "--json writes every event: a plot of them shows what overlaps."
                   : "The executor's clock counts turns of its threads: these shares say nothing "
                     "about time. They show the\nform of what a GPU leaves, which --json writes "
                     "event by event.");
    auto events = nlohmann::ordered_json::array();
    program.results.extras["timeline_clock"] = gpu ? "cycles" : "turns of the executor's threads";
    program.results.extras["timeline_problem"] = describe(p);
    for (const TracedSchedule& schedule : traced) {
        add_to_json(events, schedule);
        program.checks.that(schedule.name + ": every clock of the warpgroups is accounted for",
                            "without a gap", complete(schedule) ? "without a gap" : "not so",
                            complete(schedule));
    }
    program.results.extras["timeline"] = std::move(events);
}

}  // namespace fa
