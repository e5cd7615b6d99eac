#include "chapters/04_cuda_tiled/fused_launch.cuh"
#include "chapters/05_exp2/exp2_attention.h"
#include "chapters/05_exp2/exp2_host.h"

namespace fa {

constinit const Implementation CUDA_EXP2 =
    cuda_entry<Exp2Kernel>("cuda_exp2", 5, "register tiles, exp2 with a folded scale");

KernelResources exp2_resources(const AttentionProblem& problem) {
    return kernel_resources<Exp2Kernel>(problem);
}

}  // namespace fa
