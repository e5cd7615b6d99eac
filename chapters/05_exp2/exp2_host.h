#pragma once
/// @file
/// The exp2 kernel as the host sees it (chapters/04_cuda_tiled/fused_kernels.h).

#include "chapters/04_cuda_tiled/fused_kernels.h"
#include "chapters/05_exp2/exp2_kernel.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// The kernel with the tile sizes of the register-tiled one.
struct Exp2Kernel {
    /// Calls `use` with the first of the configurations that serves `head_dim` and fits into shared
    /// memory. @return whether there is one; `need` becomes the bytes that the smallest asks for
    template <class Use>
    static bool with_config(std::int64_t head_dim, std::size_t shared_limit, std::size_t& need,
                            Use&& use) {
        return RegisterTiledKernel::with_config(head_dim, shared_limit, need, use);
    }
    template <class Config, class T>
    static constexpr auto function() {
        return &exp2_attention<Config, T>;
    }
};

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
