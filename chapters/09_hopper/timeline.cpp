#include "chapters/09_hopper/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace fa {

std::string_view name_of(TracePhase phase) {
    switch (phase) {
        case TracePhase::wait_keys: return "waits for keys";
        case TracePhase::wait_turn: return "waits for its turn";
        case TracePhase::products: return "products";
        case TracePhase::softmax: return "softmax";
        case TracePhase::wait_sum: return "waits for the sum";
        case TracePhase::correct: return "rescales, rounds";
        case TracePhase::finish: return "finishes";
        case TracePhase::end: break;
    }
    return "between tiles";
}

std::vector<TimelineEvent> timeline_of(std::span<const TraceStamp> stamps,
                                       std::span<const int> counts, int warpgroups, int capacity) {
    if (stamps.size() != counts.size() * static_cast<std::size_t>(capacity) ||
        counts.size() % static_cast<std::size_t>(warpgroups) != 0)
        throw std::invalid_argument(
            fmt::format("{} stamps, {} counts: not [blocks][{} warpgroups][{}]", stamps.size(),
                        counts.size(), warpgroups, capacity));
    std::vector<TimelineEvent> events;
    const std::size_t blocks = counts.size() / static_cast<std::size_t>(warpgroups);
    const auto of = [&](std::size_t place) {
        if (counts[place] < 0 || counts[place] > capacity)
            throw std::invalid_argument(
                fmt::format("{} stamps of {} possible", counts[place], capacity));
        return stamps.subspan(place * static_cast<std::size_t>(capacity),
                              static_cast<std::size_t>(counts[place]));
    };
    for (std::size_t block = 0; block < blocks; ++block) {
        const std::size_t first_place = block * static_cast<std::size_t>(warpgroups);
        std::int64_t start = std::numeric_limits<std::int64_t>::max();
        for (std::size_t w = 0; w < static_cast<std::size_t>(warpgroups); ++w)
            if (const auto own = of(first_place + w); !own.empty())
                start = std::min(start, own[0].clock);
        for (std::size_t w = 0; w < static_cast<std::size_t>(warpgroups); ++w) {
            const auto own = of(first_place + w);
            for (std::size_t i = 0; i + 1 < own.size(); ++i) {
                if (own[i + 1].clock < own[i].clock)
                    throw std::invalid_argument(
                        fmt::format("stamp {} of warpgroup {} is at clock {}, the one before at {}",
                                    i + 1, w, own[i + 1].clock, own[i].clock));
                events.push_back({static_cast<int>(block), static_cast<int>(w), own[i].tile,
                                  own[i].phase, own[i].clock - start, own[i + 1].clock - start});
            }
        }
    }
    return events;
}

std::map<TracePhase, double> phase_shares(std::span<const TimelineEvent> events) {
    std::map<TracePhase, double> shares;
    double all = 0;
    for (const TimelineEvent& e : events) {
        shares[e.phase] += static_cast<double>(e.end - e.begin);
        all += static_cast<double>(e.end - e.begin);
    }
    if (all > 0)
        for (auto& [phase, share] : shares) share /= all;
    return shares;
}

void add_to_json(nlohmann::ordered_json& array, const TracedSchedule& schedule) {
    for (const TimelineEvent& e : schedule.events)
        array.push_back({{"schedule", schedule.name},
                         {"block", e.block},
                         {"warpgroup", e.warpgroup},
                         {"tile", e.tile},
                         {"phase", name_of(e.phase)},
                         {"begin", e.begin},
                         {"end", e.end}});
}

}  // namespace fa
