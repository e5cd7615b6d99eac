#pragma once
/// @file
/// Which kernel with which tile sizes runs a problem: the same choice on the GPU and the executor.
///
/// A fused kernel is described to the host by a type with
///  - `with_config(head_dim, shared_limit, need, use)`, which calls `use.template
///    operator()<Config>()` with the tile sizes for a head dimension;
///  - `function<Config, T>()`, the kernel function for these sizes and an element type.
///
/// Entries of the list are made from it by cuda_entry() (fused_launch.cuh) and executor_entry()
/// (executor_entry.h).

#include "chapters/04_cuda_tiled/register_tiled_kernel.h"
#include "chapters/04_cuda_tiled/tiled_kernel.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// Takes the first of several tile sizes, large to small, that has the head dimension and fits.
/// Speed only, never correctness: the limit is shared memory, in which all tiles are fp32.
/// @param shared_limit bytes of shared memory a block may have on the device
/// @return false if nothing fits, with `need` set to the least that would
template <class... Configs, class Use>
bool with_first_config(std::int64_t head_dim, std::size_t shared_limit, std::size_t& need,
                       Use&& use) {
    const auto fits = [&]<class Config>() {
        if (head_dim > Config::HEAD_DIM) return false;
        need = Config::SHARED_BYTES;
        if (need > shared_limit) return false;
        use.template operator()<Config>();
        return true;
    };
    return (fits.template operator()<Configs>() || ...);
}

/// The first fused kernel.
struct TiledKernel {
    /// Calls `use` with the first of the configurations that serves `head_dim` and fits into shared
    /// memory. @return whether there is one; `need` becomes the bytes that the smallest asks for
    template <class Use>
    static bool with_config(std::int64_t head_dim, std::size_t shared_limit, std::size_t& need,
                            Use&& use) {
        return with_first_config<TiledConfig<64, 64, 64>, TiledConfig<128, 32, 32>,
                                 TiledConfig<256, 32, 16>>(head_dim, shared_limit, need, use);
    }
    template <class Config, class T>
    static constexpr auto function() {
        return &tiled_attention<Config, T>;
    }
};

/// The register-tiled kernel.
struct RegisterTiledKernel {
    /// Calls `use` with the first of the configurations that serves `head_dim` and fits into shared
    /// memory. @return whether there is one; `need` becomes the bytes that the smallest asks for
    template <class Use>
    static bool with_config(std::int64_t head_dim, std::size_t shared_limit, std::size_t& need,
                            Use&& use) {
        return with_first_config<
            RegisterTiledConfig<64, 128, 64, 16, 8>, RegisterTiledConfig<64, 64, 32, 16, 8>,
            RegisterTiledConfig<128, 64, 32, 16, 8>, RegisterTiledConfig<256, 32, 16, 8, 16>>(
            head_dim, shared_limit, need, use);
    }
    template <class Config, class T>
    static constexpr auto function() {
        return &register_tiled_attention<Config, T>;
    }
};

/// Thread blocks of a launch: query blocks × heads × batch.
template <class Config>
std::int64_t block_count(const AttentionProblem& p) {
    return p.batch * p.heads_q * ((p.len_q + Config::BLOCK_M - 1) / Config::BLOCK_M);
}

/// The reason why a fused kernel cannot run a problem, with the numbers, or empty.
/// @param shared_limit bytes of shared memory a block may have on the device
template <class Kernel>
std::string fused_why_unsupported(const AttentionProblem& p, std::size_t shared_limit) {
    if (std::string reason = fused_sizes_why_unsupported(p); !reason.empty()) return reason;
    std::int64_t blocks = 0;
    std::size_t need = 0;
    const bool fits = Kernel::with_config(p.head_dim, shared_limit, need,
                                          [&]<class Config>() { blocks = block_count<Config>(p); });
    return fused_launch_why_unsupported(p, blocks, fits ? 0 : need, shared_limit);
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
