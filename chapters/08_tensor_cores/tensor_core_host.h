#pragma once
/// @file
/// The last kernel as the host sees it: which sizes for which problem, the same choice on the GPU
/// and the executor.

#include <type_traits>

#include "chapters/08_tensor_cores/tensor_core_kernel.h"
#include "chapters/08_tensor_cores/tensor_core_support.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

// [table]
/// 32 rows to a warp read each piece of K and V for twice as many products as 16 do, but a grid of
/// such blocks needs a longer problem to fill the GPU. Rows of 128 channels leave no registers for
/// Q, nor for 64 keys.
using LongRows64 = TensorCoreConfig<64, 2, 64, true, 2>;
using ShortRows64 = TensorCoreConfig<64, 1, 64, true, 3>;
using LongRows128 = TensorCoreConfig<128, 2, 32, false, 2>;
using ShortRows128 = TensorCoreConfig<128, 1, 64, false, 2>;
using Rows256 = TensorCoreConfig<256, 1, 32, false, 2>;
/// For tensors whose rows do not allow 16 bytes at a time. Speed is elsewhere.
using AnyRows128 = TensorCoreConfig<128, 1, 64, false, 2, false>;
using AnyRows256 = TensorCoreConfig<256, 1, 16, false, 2, false>;
// [table]

/// The last kernel (chapters/08_tensor_cores/entries.h says what such a type must offer).
struct TensorCoreKernel {
    /// Calls `use.template operator()<Config>()` with the sizes for a problem. @return the sizes'
    /// shared memory in bytes
    template <class Use>
    static std::size_t with_config(const AttentionProblem& p, bool chunked, int multiprocessors,
                                   Use&& use) {
        const auto take = [&]<class Config>(std::type_identity<Config>) {
            use.template operator()<Config>();
            return Config::SHARED_BYTES;
        };
        if (!chunked)
            return p.head_dim <= 128 ? take(std::type_identity<AnyRows128>{})
                                     : take(std::type_identity<AnyRows256>{});
        // [choice]
        // Two of the large blocks fit on a multiprocessor. A grid that does not fill them all once
        // is faster in small blocks.
        const bool is_long = blocks_of(p, LongRows64::BLOCK_M) >= 2 * multiprocessors;
        // [choice]
        if (p.head_dim <= 64)
            return is_long ? take(std::type_identity<LongRows64>{})
                           : take(std::type_identity<ShortRows64>{});
        if (p.head_dim <= 128)
            return is_long ? take(std::type_identity<LongRows128>{})
                           : take(std::type_identity<ShortRows128>{});
        return take(std::type_identity<Rows256>{});
    }
    /// The kernel as a function of the arguments.
    template <class Config, class T>
    static constexpr auto function() {
        return &tensor_core_attention<Config, T>;
    }
    static constexpr std::int64_t MAX_HEAD_DIM = 256;
};

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
