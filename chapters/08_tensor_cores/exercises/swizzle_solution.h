#pragma once
/// @file
/// Solution of the exercise on swizzles.
///
/// Eight places are all banks, so only places modulo 8 count. Row r begins at r·n of them, n chunks
/// to a row. Let g be the largest power of two, up to 8, that divides n. Then 8/g successive rows
/// begin at different multiples of g, and after that it starts over. So each chunk may stay in its
/// group of g places, which lies wholly in the row, and only the g rows that begin alike must be
/// told apart within the group: by an XOR with how often it has started over.
///
/// With 64 and 128 columns g is 8, every row begins alike, and this is the chapter's swizzle. With
/// 96 it is 4: the groups of even and odd rows are in different halves of the banks already. With
/// an odd n it is 1, and nothing need be done, which is why one chunk of padding helps, too.

#include <algorithm>

namespace fa::exercise {

/// Where a row keeps one of its chunks.
inline int place(int row, int chunk, int chunks) {
    const int group = std::min(chunks & -chunks, 8);
    const int turn = row / (8 / group) % group;
    return chunk ^ turn;
}

}  // namespace fa::exercise
