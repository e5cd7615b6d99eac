#include "chapters/04_cuda_tiled/fused_launch.cuh"
#include "chapters/04_cuda_tiled/tiled_attention.h"

namespace fa {

constinit const Implementation CUDA_TILED =
    cuda_entry<TiledKernel>("cuda_tiled", 4, "fused, tiles in shared memory, fp32 arithmetic");
constinit const Implementation CUDA_REGISTER_TILED = cuda_entry<RegisterTiledKernel>(
    "cuda_register_tiled", 4, "fused, register tiles, fp32 arithmetic");

KernelResources kernel_resources(std::string_view name, const AttentionProblem& problem) {
    if (name == CUDA_TILED.name) return kernel_resources<TiledKernel>(problem);
    if (name == CUDA_REGISTER_TILED.name) return kernel_resources<RegisterTiledKernel>(problem);
    throw std::invalid_argument(std::string(name) + " is no fused kernel of chapter 4");
}

}  // namespace fa
