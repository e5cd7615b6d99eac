#pragma once
/// @file
/// The chapter's two fused kernels for the sections that run or describe both. Included only by
/// files that the C++ compiler, not nvcc, compiles.

#include <string_view>

#include "chapters/04_cuda_tiled/executor_entry.h"
#include "chapters/04_cuda_tiled/kernel_resources.h"

namespace fa {

/// The sizes that a kernel takes on a device with this much shared memory per block, without what
/// only the driver knows.
template <class Kernel>
KernelResources sizes_of(const AttentionProblem& p, std::size_t shared_limit) {
    KernelResources r;
    std::size_t need = 0;
    Kernel::with_config(p.head_dim, shared_limit, need, [&]<class Config>() {
        r = sizes_of_config<Config>(block_count<Config>(p));
    });
    return r;
}

/// Calls `use.template operator()<Kernel>(name)` for both, the names being those of the list
/// without the device.
template <class Use>
void for_each_fused_kernel(Use&& use) {
    use.template operator()<TiledKernel>(std::string_view("tiled"));
    use.template operator()<RegisterTiledKernel>(std::string_view("register_tiled"));
}

}  // namespace fa
