#include "chapters/09_hopper/cuda_entries.cuh"
#include "chapters/09_hopper/cuda_hopper.h"
#include "chapters/09_hopper/hopper_host.h"

namespace fa {

constinit const Implementation CUDA_HOPPER =
    hopper_entry<HopperKernel>("cuda_hopper", "TMA, wgmma, roles: faster than cuDNN is the aim");

KernelResources hopper_resources(const AttentionProblem& problem) {
    return hopper_resources_of<HopperKernel>(problem);
}

}  // namespace fa
