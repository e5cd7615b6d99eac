#pragma once
/// @file
/// The last kernels as the host sees them: which sizes for which problem, the same choice on the
/// GPU and the executor.

#include <tuple>

#include "chapters/09_hopper/hopper_choice.h"
#include "chapters/09_hopper/hopper_entries.h"
#include "chapters/09_hopper/hopper_kernel.h"
#include "chapters/09_hopper/short_kernel.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

// [table]
/// Up to 64 channels, with several warpgroups in a block, there is always another one's softmax to
/// run beside, and a warpgroup waits for both of its products at once. Where maxima are searched
/// for, the weighted sum runs beside the search.
template <Rescale RESCALE>
inline constexpr HopperSwitches LONG64{
    .overlap = RESCALE == Rescale::rare ? Overlap::together : Overlap::scores, .rescale = RESCALE};
/// Four warpgroups: where there is much to do.
template <Rescale RESCALE>
using LongHopper64 = HopperConfig<64, 4, 64, 6, 2, LONG64<RESCALE>>;
/// Three warpgroups: smaller tiles, where larger ones would leave multiprocessors idle.
template <Rescale RESCALE>
using MediumHopper64 = HopperConfig<64, 3, 64, 6, 2, LONG64<RESCALE>>;
/// Four in pairs of blocks; nothing is gained by it, and no problem is given to it.
template <Rescale RESCALE>
using PairedHopper64 =
    HopperConfig<64, 4, 64, 6, 2,
                 HopperSwitches{
                     .overlap = LONG64<RESCALE>.overlap, .rescale = RESCALE, .cluster = 2}>;
/// In blocks of one warpgroup a weighted sum runs beside the softmax; where there is no maximum to
/// look for, it begins when the scores are here.
template <Rescale RESCALE>
inline constexpr HopperSwitches SHORT64{
    .overlap = RESCALE == Rescale::rare ? Overlap::softmax : Overlap::scores, .rescale = RESCALE};
/// Short problems: four blocks of one warpgroup on a multiprocessor.
template <Rescale RESCALE>
using ShortHopper64 = ShortConfig<64, 1, 64, 2, 4, SHORT64<RESCALE>>;
/// Three, with room for loads to run ahead.
template <Rescale RESCALE>
using FewHopper64 = ShortConfig<64, 1, 64, 4, 3, SHORT64<RESCALE>>;
/// Three that take twice as many keys at a time. A search for maxima leaves too few registers.
using WideHopper64 = ShortConfig<64, 1, 128, 2, 3, SHORT64<Rescale::rare>>;
/// Up to 128 channels: where the overlap within each warpgroup pays.
template <Rescale RESCALE>
using LongHopper128 =
    HopperConfig<128, 3, 64, 4, 2, HopperSwitches{.overlap = Overlap::scores, .rescale = RESCALE}>;
/// In pairs of blocks, which load keys and values together.
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

/// Pairs of blocks, for problems of any size.
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

// [choice]
/// The sizes to choose from, up to 64 channels.
template <Rescale RESCALE>
constexpr auto options64() {
    const std::tuple always{SizeOption<LongHopper64<RESCALE>>{"long64", {1.3, 3.1, 0.791}},
                            SizeOption<MediumHopper64<RESCALE>>{"medium64", {2.5, 2.2, 0.646}},
                            SizeOption<ShortHopper64<RESCALE>>{"short64", {2.1, 3.5, 0.251, 0.45}},
                            SizeOption<FewHopper64<RESCALE>>{"few64", {0.5, 2.3, 0.354, 0.52}}};
    if constexpr (RESCALE == Rescale::rare)
        return std::tuple_cat(
            always, std::tuple{SizeOption<WideHopper64>{"wide64", {0.6, 4.2, 0.236, 0.36}}});
    else
        return always;
}
/// The same up to 128 channels.
template <Rescale RESCALE>
constexpr auto options128() {
    return std::tuple{SizeOption<LongHopper128<RESCALE>>{"long128", {1.7, 3.3, 0.941}},
                      SizeOption<ShortHopper128<RESCALE>>{"short128", {0.9, 3.3, 0.681}},
                      SizeOption<PairedHopper128<RESCALE>>{"paired128", {4.1, 1.8, 0.906}}};
}

/// The last kernels.
struct HopperKernel : HopperFunctions {
    /// Calls `use.template operator()<Config>()` with the sizes for a problem.
    template <class Use>
    static void with_config(const AttentionProblem& p, int multiprocessors, Use&& use) {
        const auto quickest = [&](const auto&... options) {
            with_quickest(p, multiprocessors, use, options...);
        };
        with_rescale(p.dtype, [&]<Rescale RESCALE>() {
            if (p.head_dim > 64)
                std::apply(quickest, options128<RESCALE>());
            else
                std::apply(quickest, options64<RESCALE>());
        });
    }
};
// [choice]

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
