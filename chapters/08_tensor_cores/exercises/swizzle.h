#pragma once
/// @file
/// Exercise: a swizzle for rows of any length. Fill in the function and run
///
///     scripts/exercise.sh 8

namespace fa::exercise {

/// Where a row keeps one of its chunks of 16 bytes. Rows lie one behind the other without gaps:
/// place p of row r is the 16 bytes from 16·(r·chunks + p) on, and 128 bytes are all 32 banks.
/// ldmatrix reads the same chunk of eight successive rows.
/// @param chunk  0 … chunks − 1
/// @param chunks to a row: 8 for 64 columns, 12 for 96, 16 for 128; any number from 1 on
/// @return 0 … chunks − 1
inline int place([[maybe_unused]] int row, int chunk, [[maybe_unused]] int chunks) {
    return chunk;  // swizzle
}

}  // namespace fa::exercise
