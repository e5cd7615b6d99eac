#pragma once
/// @file
/// The last kernels as the host sees them: which sizes for which problem, the same choice on the
/// GPU and the executor.

#include <algorithm>
#include <type_traits>

#include "chapters/09_hopper/hopper_entries.h"
#include "chapters/09_hopper/hopper_kernel.h"
#include "chapters/09_hopper/short_kernel.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

// [table]
/// Long problems, up to 64 channels. With four warpgroups there is always another one's softmax to
/// run beside, and a warpgroup waits for both of its products at once. Where maxima are searched
/// for, the weighted sum runs beside the search.
template <Rescale RESCALE>
using LongHopper64 =
    HopperConfig<64, 4, 64, 6, 2,
                 HopperSwitches{
                     .overlap = RESCALE == Rescale::rare ? Overlap::together : Overlap::scores,
                     .rescale = RESCALE}>;
/// The same in pairs of blocks; nothing is gained by it, and no problem is given to it.
template <Rescale RESCALE>
using PairedHopper64 =
    HopperConfig<64, 4, 64, 6, 2,
                 HopperSwitches{.overlap = LongHopper64<RESCALE>::SWITCHES.overlap,
                                .rescale = RESCALE,
                                .cluster = 2}>;
/// In blocks of one warpgroup a weighted sum runs beside the softmax; where there is no maximum to
/// look for, it begins when the scores are here.
template <Rescale RESCALE>
inline constexpr HopperSwitches SHORT64{
    .overlap = RESCALE == Rescale::rare ? Overlap::softmax : Overlap::scores, .rescale = RESCALE};
/// Short ones: four blocks of one warpgroup on a multiprocessor.
template <Rescale RESCALE>
using ShortHopper64 = ShortConfig<64, 1, 64, 2, 4, SHORT64<RESCALE>>;
/// Short ones without a mask, where nothing is wasted at a diagonal: wider blocks, for which a
/// search for maxima would leave too few registers.
template <Rescale RESCALE>
using ShortFullHopper64 =
    std::conditional_t<RESCALE == Rescale::rare, ShortConfig<64, 1, 128, 2, 3, SHORT64<RESCALE>>,
                       ShortHopper64<RESCALE>>;
/// Those that three such blocks are enough for, with room for loads to run ahead.
template <Rescale RESCALE>
using FewHopper64 = ShortConfig<64, 1, 64, 4, 3, SHORT64<RESCALE>>;
/// Long problems, up to 128 channels: where the overlap within each warpgroup pays.
template <Rescale RESCALE>
using LongHopper128 =
    HopperConfig<128, 3, 64, 4, 2, HopperSwitches{.overlap = Overlap::scores, .rescale = RESCALE}>;
/// Longer ones: pairs of blocks load keys and values together.
template <Rescale RESCALE>
using PairedHopper128 =
    HopperConfig<128, 3, 64, 4, 2,
                 HopperSwitches{.overlap = Overlap::scores, .rescale = RESCALE, .cluster = 2}>;
/// Short ones, in smaller tiles.
template <Rescale RESCALE>
using ShortHopper128 =
    HopperConfig<128, 2, 64, 5, 2,
                 HopperSwitches{
                     .overlap = Overlap::scores, .rescale = RESCALE, .in_advance = true}>;
// [table]

/// The functions of all kernels that are described here.
struct HopperFunctions {
    /// The one for sizes and an element type.
    template <class Config, class T>
    static constexpr auto function() {
        if constexpr (requires { Config::Q_SLOTS; })
            return &hopper_attention<Config, T>;
        else
            return &short_hopper_attention<Config, T>;
    }
};

/// Calls `use.template operator()<RESCALE>()` with what weights of a type have the range for.
template <class Use>
void with_rescale(DType dtype, Use&& use) {
    if (dtype == DType::bf16)
        use.template operator()<Rescale::rare>();
    else
        use.template operator()<Rescale::lazy>();
}

/// One of the sizes for all problems, as a kernel (hopper_entries.h).
template <class Size>
struct OneSize : HopperFunctions {
    /// Calls `use` with it.
    template <class Use>
    static void with_config(const AttentionProblem&, int, Use&& use) {
        use.template operator()<Size>();
    }
};

/// The longest ones in pairs of blocks, for problems of any size.
struct PairedKernel : HopperFunctions {
    /// Calls `use.template operator()<Config>()` with the sizes for a problem.
    template <class Use>
    static void with_config(const AttentionProblem& p, int, Use&& use) {
        with_rescale(p.dtype, [&]<Rescale RESCALE>() {
            if (p.head_dim > 64)
                use.template operator()<PairedHopper128<RESCALE>>();
            else
                use.template operator()<PairedHopper64<RESCALE>>();
        });
    }
};

/// The last kernels.
struct HopperKernel : HopperFunctions {
    // [choice]
    /// Calls `use.template operator()<Config>()` with the sizes for a problem.
    template <class Use>
    static void with_config(const AttentionProblem& p, int multiprocessors, Use&& use) {
        with_rescale(p.dtype,
                     [&]<Rescale RESCALE>() { with_sizes<RESCALE>(p, multiprocessors, use); });
    }

  private:
    template <Rescale RESCALE, class Use>
    static void with_sizes(const AttentionProblem& p, int multiprocessors, Use&& use) {
        if (p.head_dim > 64) {
            if (p.len_kv <= 512) return use.template operator()<ShortHopper128<RESCALE>>();
            if (in_pairs(p, multiprocessors))
                return use.template operator()<PairedHopper128<RESCALE>>();
            return use.template operator()<LongHopper128<RESCALE>>();
        }
        if (blocks_of(p, 64) <= 3 * multiprocessors)
            return use.template operator()<FewHopper64<RESCALE>>();
        if (blocks_of(p, 64) <= 4 * multiprocessors)  // all of them at once
            return use.template operator()<ShortHopper64<RESCALE>>();
        if (p.causal && short_and_causal(p, multiprocessors))
            return use.template operator()<ShortHopper64<RESCALE>>();
        if (!p.causal && short_and_full(p, multiprocessors))
            return use.template operator()<ShortFullHopper64<RESCALE>>();
        use.template operator()<LongHopper64<RESCALE>>();
    }
    // [pairs]
    /// Pairs of blocks read half as much, in tiles of twice the rows. With a mask one block waits
    /// for the other at every diagonal; without one, tiles are alike, and pairs must not need a
    /// round more.
    static bool in_pairs(const AttentionProblem& p, int multiprocessors) {
        if (multiprocessors < 2 || p.len_kv < 1024) return false;
        if (p.causal) return std::min(p.len_q, p.len_kv) >= 16384;
        return rounds_of(p, 384, multiprocessors / 2) <= rounds_of(p, 192, multiprocessors);
    }
    // [pairs]
    /// With a mask large tiles differ in length, and balance where there are several to a
    /// multiprocessor.
    static bool short_and_causal(const AttentionProblem& p, int multiprocessors) {
        return p.len_kv <= 960 || blocks_of(p, 256) < multiprocessors;
    }
    /// Without one they are alike: their last round may be nearly empty.
    static bool short_and_full(const AttentionProblem& p, int multiprocessors) {
        const std::int64_t places = rounds_of(p, 256, multiprocessors) * multiprocessors;
        return p.len_kv <= 1536 && 5 * blocks_of(p, 256) < 4 * places;
    }
    /// Rounds of tiles of so many rows, of which so many run at once.
    static std::int64_t rounds_of(const AttentionProblem& p, int rows, int at_once) {
        return (blocks_of(p, rows) + at_once - 1) / at_once;
    }
    // [choice]
};

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
