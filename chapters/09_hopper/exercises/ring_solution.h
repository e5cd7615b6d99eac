#pragma once
/// @file
/// Solution of the exercise on rings.
///
/// Block i is the use number i / stages of its stage. The phases of `full` are numbered like the
/// uses: it ends phase r when the block of round r is here, so a consumer waits for the parity of
/// r. `empty` ends phase r when the block of round r has been read. The producer of round r needs
/// the end of phase r − 1: the other parity. In round 0 that is "phase −1", odd; and a wait for
/// parity 1 returns at once while the barrier is in its phase 0. That is why a ring needs no start.
///
/// Two phases are all that a parity tells apart. Whoever waits must therefore be sure that the
/// barrier is not two phases ahead. `full` cannot be, as seen from a warp that has not handed back
/// its stage: the producer waits for it. It can, as seen from a warp for which another has spoken,
/// and then the wait never ends; or the block is overwritten while the warp reads. So every warp
/// speaks for itself.

namespace fa::exercise {

/// A stage, and the parity to wait for at one of its barriers.
struct Use {
    int stage = 0;
    unsigned parity = 0;
};

/// Where block i lies, and what a consumer waits for at `full`.
inline Use filled(int i, int stages) {
    return {.stage = i % stages, .parity = static_cast<unsigned>(i / stages) & 1u};
}

/// Where block i goes, and what the producer waits for at `empty`.
inline Use emptied(int i, int stages) {
    return {.stage = i % stages, .parity = (static_cast<unsigned>(i / stages) & 1u) ^ 1u};
}

/// For how many arrivals `empty` is initialised: one of each warp.
inline int arrivals(int warpgroups) {
    return 4 * warpgroups;
}

/// Whether a thread of a consumer arrives at `empty`: one lane of its warp does.
inline bool hands_back(int thread) {
    return thread % 32 == 0;
}

}  // namespace fa::exercise
