#pragma once
/// @file
/// From clock stamps (trace.h) to a timeline: what each warpgroup did when.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chapters/09_hopper/trace.h"
#include "common/attention.h"

namespace fa {

/// The name of what a warpgroup does, as tables and results call it.
std::string_view name_of(TracePhase phase);

/// A warpgroup does something from one clock to another.
struct TimelineEvent {
    int block = 0, warpgroup = 0, tile = 0;
    TracePhase phase = TracePhase::end;  ///< `end`: between two tiles
    std::int64_t begin = 0, end = 0;     ///< clocks since the first stamp of the block
};

/// A schedule and what was seen of it.
struct TracedSchedule {
    std::string name;
    std::vector<TimelineEvent> events;
};

/// The events between each two stamps of a warpgroup.
/// @param stamps [blocks][warpgroups][capacity] @param counts [blocks][warpgroups]
/// @throws std::invalid_argument for sizes that do not fit, or a clock that runs backwards
std::vector<TimelineEvent> timeline_of(std::span<const TraceStamp> stamps,
                                       std::span<const int> counts, int warpgroups, int capacity);

/// Which share of all warpgroups' clocks each phase takes.
std::map<TracePhase, double> phase_shares(std::span<const TimelineEvent> events);

/// As an array of objects {schedule, block, warpgroup, tile, phase, begin, end}, after those that
/// `array` has.
void add_to_json(nlohmann::ordered_json& array, const TracedSchedule& schedule);

/// Runs every schedule of the timeline on the executor, whose clock counts turns of threads.
std::vector<TracedSchedule> trace_on_executor(const AttentionProblem& problem, std::uint64_t seed,
                                              int blocks, int capacity);

}  // namespace fa
