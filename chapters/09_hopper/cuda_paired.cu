#include "chapters/09_hopper/cuda_entries.cuh"
#include "chapters/09_hopper/cuda_hopper.h"
#include "chapters/09_hopper/hopper_host.h"

namespace fa {

constinit const Implementation CUDA_HOPPER_PAIRED = hopper_entry<PairedKernel>(
    "cuda_hopper_paired", "chapter 9's last kernels, keys and values loaded by pairs of blocks");

}  // namespace fa
