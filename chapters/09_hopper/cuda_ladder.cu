#include <stdexcept>
#include <string>

#include "chapters/09_hopper/cuda_entries.cuh"
#include "chapters/09_hopper/ladder.h"
#include "chapters/09_hopper/ladder_host.h"

namespace fa {

#define STEP(ENTRY, TYPE, NAME, SUMMARY)   \
    constinit const Implementation ENTRY = \
        hopper_entry<HopperLadderKernel<TYPE>>("cuda_" NAME, SUMMARY)
STEP(CUDA_WGMMA, WgmmaStep, "wgmma", "TMA and warpgroup products, one role");
STEP(CUDA_PRODUCER, ProducerStep, "producer", "and a warp that only loads");
STEP(CUDA_OVERLAP, OverlapStep, "overlap", "and the weighted sum beside the next softmax");
STEP(CUDA_PING_PONG, PingPongStep, "ping_pong", "and warpgroups that take turns");
STEP(CUDA_WARPGROUPS, WarpgroupsStep, "warpgroups", "four warpgroups in place of turns");
STEP(CUDA_DIAGONAL, DiagonalStep, "diagonal", "and each stops at its own diagonal");
STEP(CUDA_PERSISTENT, PersistentStep, "persistent", "and blocks that fetch tiles");
STEP(CUDA_HOPPER_LAZY, LazyHopperStep, "hopper_lazy", "and rescaling only when it must be");
#undef STEP

KernelResources hopper_ladder_resources(std::string_view name, const AttentionProblem& problem) {
    KernelResources r;
    bool found = false;
    for_each_hopper_step([&]<class Step>(int, std::string_view step) {
        if (name != "cuda_" + std::string(step)) return;
        r = hopper_resources_of<HopperLadderKernel<Step>>(problem);
        found = true;
    });
    if (!found) throw std::invalid_argument(std::string(name) + " is no step of the ladder");
    return r;
}

}  // namespace fa
