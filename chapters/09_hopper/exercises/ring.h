#pragma once
/// @file
/// Exercise: who waits for which phase of which barrier. Fill in the functions and run
///
///     scripts/exercise.sh 9
///
/// A ring has `stages` places in shared memory. Each has two barriers: `full`, at which the
/// producer arrives once a round and announces bytes, and `empty`, at which consumers arrive when
/// they have read. A barrier counts phases 0, 1, 2, …; wait(parity) returns as soon as the
/// barrier's present phase has the *other* parity. It does not know which phase you meant.

namespace fa::exercise {

/// A stage, and the parity to wait for at one of its barriers.
struct Use {
    int stage = 0;
    unsigned parity = 0;
};

/// Where block i of a tile lies, and what a consumer waits for at `full` before it reads.
inline Use filled(int i, [[maybe_unused]] int stages) {
    return {.stage = i % stages, .parity = 0};  // right in the first round
}

/// Where block i goes, and what the producer waits for at `empty` before it loads. A ring begins
/// empty: no one has arrived there, and nothing needs to be waited for.
inline Use emptied(int i, [[maybe_unused]] int stages) {
    return {.stage = i % stages, .parity = 0};
}

/// For how many arrivals `empty` is initialised.
/// @param warpgroups consumers, four warps each, which all read every block
inline int arrivals(int warpgroups) {
    return warpgroups;
}

/// Whether a thread of a consumer arrives at `empty` when it has read a block. Lanes of a warp have
/// met before; warps have not.
/// @param thread 0 … 127, of its warpgroup
inline bool hands_back(int thread) {
    return thread == 0;
}

}  // namespace fa::exercise
