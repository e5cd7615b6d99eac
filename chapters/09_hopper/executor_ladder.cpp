#include <array>

#include "chapters/09_hopper/executor_entries.h"
#include "chapters/09_hopper/ladder.h"
#include "chapters/09_hopper/ladder_host.h"

namespace fa {

std::span<const Implementation> hopper_ladder_on_executor() {
    constexpr std::string_view SUMMARY = "a step of chapter 9's ladder";
    static constexpr std::array STEPS{
        hopper_executor_entry<HopperLadderKernel<WgmmaStep>>("executor_wgmma", SUMMARY),
        hopper_executor_entry<HopperLadderKernel<ProducerStep>>("executor_producer", SUMMARY),
        hopper_executor_entry<HopperLadderKernel<OverlapStep>>("executor_overlap", SUMMARY),
        hopper_executor_entry<HopperLadderKernel<PingPongStep>>("executor_ping_pong", SUMMARY),
        hopper_executor_entry<HopperLadderKernel<WarpgroupsStep>>("executor_warpgroups", SUMMARY),
        hopper_executor_entry<HopperLadderKernel<DiagonalStep>>("executor_diagonal", SUMMARY),
        hopper_executor_entry<HopperLadderKernel<PersistentStep>>("executor_persistent", SUMMARY),
        hopper_executor_entry<HopperLadderKernel<LazyHopperStep>>("executor_hopper_lazy", SUMMARY),
    };
    return STEPS;
}

}  // namespace fa
