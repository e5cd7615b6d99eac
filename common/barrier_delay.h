#pragma once
/// @file
/// Delays at barriers, to find hangs and races: a debug switch of common/hopper_language.h.
///
/// A file that defines FA_BARRIER_DELAYS before it includes a kernel gets that kernel with a sleep
/// of one chosen warp before each arrival, and before and after each wait, in a namespace of its
/// own (common/kernel_language.h), so that both kinds can be linked into one program. Which warp,
/// and how long, is said at run time. Without the switch nothing of it is compiled.

namespace fa {

/// Who sleeps at barriers, and how long.
struct BarrierDelay {
    int warp = -1;  ///< in each block, or each cluster, whose warps are numbered through; −1: none
    /// On the GPU at most a million (PTX ISA, "nanosleep", which sleeps up to twice as long). On
    /// the executor so many turns of other threads.
    int nanoseconds = 0;
};

}  // namespace fa
