#pragma once
/// @file
/// How much the maxima of an online softmax grow from tile to tile: what lazy rescaling lives on.

#include <array>
#include <cstdint>
#include <string>

#include "common/attention.h"

namespace fa {

/// Growth of rows' maxima, in units of base 2, over all tiles but each row's first.
struct Growth {
    static constexpr std::array BOUNDS{0.0, 1.0, 2.0, 4.0, 8.0};  ///< upper ends, then no end

    std::array<std::int64_t, BOUNDS.size() + 1> count{};  ///< rows × tiles in each range
    std::int64_t rows = 0;
    std::int64_t pairs = 0;             ///< of a row and a tile that it sees, all of them
    std::int64_t classic_rescales = 0;  ///< pairs in which the maximum grew at all, the first too
    std::int64_t lazy_rescales = 0;     ///< pairs in which the lazy reference moved, the first too
    std::int64_t warp_tiles = 0;        ///< pairs of 32 neighbouring rows and a tile
    std::int64_t warp_rescales = 0;     ///< those in which some reference moved

    Growth& operator+=(const Growth& other);
    /// "0", "0 to 1", …, "over 8".
    static std::string range(std::size_t n);
};

/// Looks at all rows of a problem in host memory, tiles of 64 keys from the last that a row sees to
/// the first, as the kernel does.
Growth growth_of(const AttentionProblem& problem, const AttentionTensors& tensors);

}  // namespace fa
