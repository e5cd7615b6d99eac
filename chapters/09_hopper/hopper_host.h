#pragma once
/// @file
/// The last kernels as the host sees them: which sizes for which problem, the same choice on the
/// GPU and the executor.

#include "chapters/09_hopper/hopper_entries.h"
#include "chapters/09_hopper/hopper_kernel.h"
#include "chapters/09_hopper/short_kernel.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

// [table]
/// Long problems, up to 64 channels.
using LongHopper64 = HopperConfig<64, 4, 64, 6, 2>;
/// Very long ones: no maximum after the first blocks, and weighted sums that begin when the scores
/// are here, which in the prototype paid for these alone. Its weights need the range of bf16.
using LongestHopper64 =
    HopperConfig<64, 4, 64, 6, 2,
                 HopperSwitches{.overlap = Overlap::softmax, .rescale = Rescale::rare}>;
/// Short problems: four blocks of one warpgroup on a multiprocessor.
using ShortHopper64 = ShortConfig<64, 1, 64, 2, 4>;
/// Short problems without a causal mask: two blocks of two, which share what they load.
using ShortFullHopper64 = ShortConfig<64, 2, 64, 5, 2>;
/// Long problems, up to 128 channels.
using LongHopper128 = HopperConfig<128, 3, 80, 4, 1>;
/// Shorter ones.
using ShortHopper128 = HopperConfig<128, 2, 128, 2, 2>;
// [table]

/// The kernel function for sizes and an element type.
template <class Config, class T>
constexpr auto hopper_function() {
    if constexpr (requires { Config::Q_SLOTS; })
        return &hopper_attention<Config, T>;
    else
        return &short_hopper_attention<Config, T>;
}

/// One of the sizes for all problems, as a kernel (hopper_entries.h).
template <class Size>
struct OneSize {
    /// Calls `use` with it.
    template <class Use>
    static void with_config(const AttentionProblem&, int, Use&& use) {
        use.template operator()<Size>();
    }
    /// The kernel function.
    template <class Config, class T>
    static constexpr auto function() {
        return hopper_function<Config, T>();
    }
};

/// The last kernels.
struct HopperKernel {
    // [choice]
    /// Calls `use.template operator()<Config>()` with the sizes for a problem.
    template <class Use>
    static void with_config(const AttentionProblem& p, int multiprocessors, Use&& use) {
        if (p.head_dim <= 64) {
            const std::int64_t longest_short = p.causal ? 1023 : 1024;
            // Where large tiles would leave multiprocessors idle, too.
            const bool is_short = p.len_kv <= longest_short || blocks_of(p, 256) < multiprocessors;
            if (is_short && p.causal) return use.template operator()<ShortHopper64>();
            if (is_short) return use.template operator()<ShortFullHopper64>();
            if (p.len_kv >= 8192 && p.dtype == DType::bf16)
                return use.template operator()<LongestHopper64>();
            return use.template operator()<LongHopper64>();
        }
        if (p.len_kv <= 2048) return use.template operator()<ShortHopper128>();
        return use.template operator()<LongHopper128>();
    }
    // [choice]
    /// The kernel function.
    template <class Config, class T>
    static constexpr auto function() {
        return hopper_function<Config, T>();
    }
};

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
