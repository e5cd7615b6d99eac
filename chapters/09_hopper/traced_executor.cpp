#include "chapters/09_hopper/ablation_kinds.h"
#include "chapters/09_hopper/counted_steps.h"
#include "chapters/09_hopper/timeline.h"

namespace fa {

std::vector<TracedSchedule> trace_on_executor(const AttentionProblem& problem, std::uint64_t seed,
                                              int blocks, int capacity) {
    std::vector<TracedSchedule> traced;
    AttentionData<BFloat16> data(problem, seed);
    for_each_traced_schedule([&]<class Config>(std::string_view name) {
        const int places = blocks * Config::WARPGROUPS;
        std::vector<TraceStamp> stamps(static_cast<std::size_t>(places * capacity));
        std::vector<int> counts(static_cast<std::size_t>(places));
        run_counted<HopperKernel, Config>(problem, data, {.workers = 1},
                                          [&](HopperArguments<BFloat16>& a) {
                                              a.trace = {{stamps.data(), places * capacity},
                                                         {counts.data(), places},
                                                         blocks,
                                                         Config::WARPGROUPS,
                                                         capacity};
                                          });
        traced.push_back(
            {std::string(name), timeline_of(stamps, counts, Config::WARPGROUPS, capacity)});
    });
    return traced;
}

}  // namespace fa
