#include "chapters/06_benchmark/tiles_of.h"

#include "chapters/03_blocked_attention/blocked_attention.h"
#include "chapters/03_blocked_attention/fast_attention.h"
#ifdef FA_CUDA_ENABLED
#include "chapters/04_cuda_tiled/tiled_attention.h"
#include "chapters/05_exp2/exp2_attention.h"
#endif

namespace fa {

std::optional<TileSize> tiles_of(const Implementation& implementation,
                                 [[maybe_unused]] const AttentionProblem& problem) {
    const std::string_view name = implementation.name;
    if (name == CPU_BLOCKED.name || name == CPU_BLOCKED_KV_OUTER.name) return TileSize{};
    if (name.starts_with(CPU_FAST.name))  // chapter 5's variant has chapter 3's tiles
        return TileSize{.q = fast_tile().block_q, .kv = fast_tile().block_kv};
#ifdef FA_CUDA_ENABLED
    const auto tiles = [](const KernelResources& r) {
        return TileSize{.q = r.block_m, .kv = r.block_n};
    };
    if (name == CUDA_TILED.name || name == CUDA_REGISTER_TILED.name)
        return tiles(kernel_resources(name, problem));
    if (name == CUDA_EXP2.name) return tiles(exp2_resources(problem));
#endif
    return std::nullopt;
}

}  // namespace fa
