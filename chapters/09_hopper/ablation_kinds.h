#pragma once
/// @file
/// The variants of the last kernel, as types.

#include "chapters/09_hopper/hopper_host.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// The sizes for long problems with other switches.
template <HopperSwitches SWITCHES>
using Variant64 = HopperConfig<64, 4, 64, 6, 2, SWITCHES>;

/// Fewer warpgroups and wider blocks, where turns may pay.
template <int WARPGROUPS, HopperSwitches SWITCHES = HopperSwitches{}>
using Wide64 = HopperConfig<64, WARPGROUPS, 128, 3, 2, SWITCHES>;

/// Calls `use.template operator()<Config>(name)` for each variant; the first is the kernel as it
/// is.
template <class Use>
void for_each_hopper_variant(Use&& use) {
    using enum Overlap;
    using enum Rescale;
    using S = HopperSwitches;
    // clang-format off
    use.template operator()<LongHopper64<rare>>("the kernel as it is");
    use.template operator()<Variant64<S{.overlap = none}>>("no overlap");
    use.template operator()<Variant64<S{.overlap = scores}>>("the sum issued with the scores");
    use.template operator()<Variant64<S{.rescale = always}>>("rescaled at every block");
    use.template operator()<Variant64<S{.rescale = lazy}>>("rescaled lazily");
    use.template operator()<Variant64<S{.overlap = scores, .rescale = lazy}>>("lazily, the sum issued with the scores");
    use.template operator()<Variant64<S{.own_diagonal = false}>>("no warpgroup stops at its own diagonal");
    use.template operator()<Variant64<S{.persistent = false}>>("one tile to a block");
    use.template operator()<Variant64<S{.in_advance = true}>>("tiles handed out in advance");
    use.template operator()<Variant64<S{.late_fetch = false}>>("the next tile fetched early");
    use.template operator()<Variant64<S{.sections = false}>>("tiles head by head");
    use.template operator()<Variant64<S{.store_by_tma = false}>>("O stored from registers");
    use.template operator()<Variant64<S{.move_registers = false}>>("no registers moved");
    use.template operator()<Variant64<S{.early_launch = false}>>("begun when all before it has ended");
    // The polynomial needs a maximum.
    use.template operator()<Variant64<S{.overlap = scores, .rescale = lazy, .polynomial_eighths = 1}>>("lazily, 1/8 of exponentials by polynomial");
    use.template operator()<Variant64<S{.overlap = scores, .rescale = lazy, .polynomial_eighths = 2}>>("lazily, 2/8 of exponentials by polynomial");
    use.template operator()<Variant64<S{.overlap = scores, .rescale = lazy, .polynomial_eighths = 4}>>("lazily, 4/8 of exponentials by polynomial");
    use.template operator()<Variant64<S{.ping_pong = true}>>("turns");
    use.template operator()<Wide64<3>>("3 warpgroups, 128 keys");
    use.template operator()<Wide64<3, S{.ping_pong = true}>>("3 warpgroups, 128 keys, turns");
    use.template operator()<Wide64<2>>("2 warpgroups, 128 keys");
    use.template operator()<Wide64<2, S{.ping_pong = true}>>("2 warpgroups, 128 keys, turns");
    // clang-format on
}

/// Calls `use.template operator()<Config>(name)` for the schedules that are drawn as a timeline.
template <class Use>
void for_each_traced_schedule(Use&& use) {
    using enum Overlap;
    using enum Rescale;
    using S = HopperSwitches;
    // clang-format off
    use.template operator()<Wide64<2, S{.overlap = none, .rescale = lazy, .traced = true}>>("no overlap");
    use.template operator()<Wide64<2, S{.overlap = scores, .rescale = lazy, .traced = true}>>("overlap");
    use.template operator()<Wide64<2, S{.overlap = scores, .rescale = lazy, .ping_pong = true, .traced = true}>>("overlap, turns");
    use.template operator()<Variant64<S{.traced = true}>>("four warpgroups");
    // clang-format on
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
