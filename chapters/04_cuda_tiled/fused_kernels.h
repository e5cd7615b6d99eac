#pragma once
/// @file
/// Which kernel with which tile sizes runs a problem: the same choice on the GPU and the executor.

#include "chapters/04_cuda_tiled/fused_support.h"
#include "chapters/04_cuda_tiled/register_tiled_kernel.h"
#include "chapters/04_cuda_tiled/tiled_kernel.h"

namespace fa::inline FA_KERNEL_NAMESPACE {

/// Calls `use.template operator()<Config>()` with the tile sizes for a head dimension, the first
/// row of the table whose shared memory fits. Speed only, never correctness: the limit is shared
/// memory, in which all tiles are fp32.
/// @param shared_limit bytes of shared memory a block may have on the device
/// @return false if nothing fits, with `need` set to the least that would
template <FusedStep STEP, class Use>
bool with_fused_config(std::int64_t head_dim, std::size_t shared_limit, std::size_t& need,
                       Use&& use) {
    const auto fits = [&]<class Config>() {
        if (head_dim > Config::HEAD_DIM) return false;
        need = Config::SHARED_BYTES;
        if (need > shared_limit) return false;
        use.template operator()<Config>();
        return true;
    };
    if constexpr (STEP == FusedStep::tiled)
        return fits.template operator()<TiledConfig<64, 64, 64>>() ||
               fits.template operator()<TiledConfig<128, 32, 32>>() ||
               fits.template operator()<TiledConfig<256, 32, 16>>();
    else
        return fits.template operator()<RegisterTiledConfig<64, 128, 64, 16, 8>>() ||
               fits.template operator()<RegisterTiledConfig<64, 64, 32, 16, 8>>() ||
               fits.template operator()<RegisterTiledConfig<128, 64, 32, 16, 8>>() ||
               fits.template operator()<RegisterTiledConfig<256, 32, 16, 8, 16>>();
}

/// Thread blocks of a launch: query blocks × heads × batch.
template <class Config>
std::int64_t block_count(const AttentionProblem& p) {
    return p.batch * p.heads_q * ((p.len_q + Config::BLOCK_M - 1) / Config::BLOCK_M);
}

/// The kernel function of a step.
template <FusedStep STEP, class Config, class T>
constexpr auto fused_kernel() {
    if constexpr (STEP == FusedStep::tiled)
        return &tiled_attention<Config, T>;
    else
        return &register_tiled_attention<Config, T>;
}

}  // namespace fa::inline FA_KERNEL_NAMESPACE
