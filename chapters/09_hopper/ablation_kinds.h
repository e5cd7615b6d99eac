#pragma once
/// @file
/// The variants of one of the last kernels, as types: for 64 channels, of the one for problems with
/// much to do; for 128 channels, of the one that is not in pairs.

#include "chapters/09_hopper/hopper_host.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// Sizes with other switches.
template <class Config, HopperSwitches SWITCHES>
using Switched = HopperConfig<Config::HEAD_DIM, Config::WARPGROUPS, Config::BLOCK_N, Config::STAGES,
                              Config::Q_SLOTS, SWITCHES>;

/// Fewer warpgroups and wider blocks, where turns may pay, for 64 channels. In which order products
/// are issued is as in the kernel as it is.
template <int WARPGROUPS, HopperSwitches SWITCHES>
using Wide64 = HopperConfig<64, WARPGROUPS, 128, 3, 2, SWITCHES>;
/// The same for 128 channels, where two warpgroups fill shared memory.
template <HopperSwitches SWITCHES>
using Wide128 = HopperConfig<128, 2, 128, 2, 2, SWITCHES>;

/// Switches with one of them changed.
template <class T>
constexpr HopperSwitches with(HopperSwitches switches, T HopperSwitches::*which, T value) {
    switches.*which = value;
    return switches;
}

/// The switches of the kernels as they are, and with one changed.
inline constexpr HopperSwitches IS64 = LongHopper64<Rescale::rare>::SWITCHES;
inline constexpr HopperSwitches IS128 = LongHopper128<Rescale::rare>::SWITCHES;
inline constexpr HopperSwitches TURNS64 = with(IS64, &HopperSwitches::ping_pong, true);
inline constexpr HopperSwitches TURNS128 = with(IS128, &HopperSwitches::ping_pong, true);
inline constexpr HopperSwitches TRACED64 = with(IS64, &HopperSwitches::traced, true);

/// Calls `use.template operator()<Config>(name)` for each switch that can be changed.
/// @tparam Long the kernel as it is, which comes first
/// @tparam Lazy the one that looks for maxima, as fp16 needs it
template <class Long, class Lazy, class Use>
void for_each_switch(Use&& use) {
    using S = HopperSwitches;
    using enum Overlap;
    using enum Rescale;
    constexpr S IS = Long::SWITCHES, LAZY = Lazy::SWITCHES;
    // clang-format off
    use.template operator()<Long>("the kernel as it is");
    if constexpr (IS.overlap != none)
        use.template operator()<Switched<Long, with(IS, &S::overlap, none)>>("no overlap");
    if constexpr (IS.overlap != together)
        use.template operator()<Switched<Long, with(IS, &S::overlap, together)>>("both products waited for at once");
    if constexpr (IS.overlap != scores)
        use.template operator()<Switched<Long, with(IS, &S::overlap, scores)>>("the sum beside the softmax, issued with the scores");
    if constexpr (IS.overlap != softmax)
        use.template operator()<Switched<Long, with(IS, &S::overlap, softmax)>>("the sum beside the softmax, issued after the scores");
    use.template operator()<Switched<Long, with(IS, &S::rescale, always)>>("rescaled at every block");
    use.template operator()<Switched<Long, with(IS, &S::rescale, lazy)>>("rescaled lazily");
    if constexpr (IS.overlap != scores)
        use.template operator()<Switched<Long, with(LAZY, &S::overlap, scores)>>("lazily, the sum issued with the scores");
    use.template operator()<Switched<Long, with(IS, &S::own_diagonal, false)>>("no warpgroup stops at its own diagonal");
    use.template operator()<Switched<Long, with(IS, &S::persistent, false)>>("one tile to a block");
    use.template operator()<Switched<Long, with(IS, &S::in_advance, true)>>("tiles handed out in advance");
    use.template operator()<Switched<Long, with(IS, &S::late_fetch, false)>>("the next tile fetched early");
    use.template operator()<Switched<Long, with(IS, &S::sections, false)>>("tiles head by head");
    use.template operator()<Switched<Long, with(IS, &S::store_by_tma, false)>>("O stored from registers");
    // With 128 channels, O and the weights leave too little of the 128 registers of a launch: ptxas
    // takes the products apart, and the time would say nothing about setmaxnreg alone.
    if constexpr (Long::HEAD_DIM == 64)
        use.template operator()<Switched<Long, with(IS, &S::move_registers, false)>>("no registers moved");
    use.template operator()<Switched<Long, with(IS, &S::early_launch, false)>>("begun when all before it has ended");
    // The polynomial needs a maximum.
    use.template operator()<Switched<Long, with(LAZY, &S::polynomial_eighths, 1)>>("lazily, 1/8 of exponentials by polynomial");
    use.template operator()<Switched<Long, with(LAZY, &S::polynomial_eighths, 2)>>("lazily, 2/8 of exponentials by polynomial");
    use.template operator()<Switched<Long, with(LAZY, &S::polynomial_eighths, 4)>>("lazily, 4/8 of exponentials by polynomial");
    use.template operator()<Switched<Long, with(IS, &S::cluster, 2)>>("keys and values loaded by pairs of blocks");
    use.template operator()<Switched<Long, with(IS, &S::ping_pong, true)>>("turns");
    // clang-format on
}

/// Calls `use.template operator()<Config>(name)` for each variant for 64 channels; the first is the
/// kernel as it is.
template <class Use>
void for_each_hopper_variant64(Use&& use) {
    for_each_switch<LongHopper64<Rescale::rare>, LongHopper64<Rescale::lazy>>(use);
    use.template operator()<Wide64<3, IS64>>("3 warpgroups, 128 keys");
    use.template operator()<Wide64<3, TURNS64>>("3 warpgroups, 128 keys, turns");
    use.template operator()<Wide64<2, IS64>>("2 warpgroups, 128 keys");
    use.template operator()<Wide64<2, TURNS64>>("2 warpgroups, 128 keys, turns");
}

/// The same for 128 channels.
template <class Use>
void for_each_hopper_variant128(Use&& use) {
    for_each_switch<LongHopper128<Rescale::rare>, LongHopper128<Rescale::lazy>>(use);
    use.template operator()<Wide128<IS128>>("2 warpgroups, 128 keys");
    use.template operator()<Wide128<TURNS128>>("2 warpgroups, 128 keys, turns");
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
    // clang-format on
    use.template operator()<Switched<LongHopper64<rare>, TRACED64>>("four warpgroups");
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
