#pragma once
/// @file
/// From tiles in shared memory to the operands of mma.sync, four 8 × 8 matrices at a time: which
/// lane brings the address of which row. (ch08_tensor_cores prints both sides of it.)

#include "chapters/08_tensor_cores/arguments.h"
#include "chapters/08_tensor_cores/shared_tile.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

// [addresses]
/// A lane's address for a 16 × 16 piece of A (Q or P, a row a query): the matrices are the upper
/// left, lower left, upper right and lower right quarter.
/// @param first_row of the piece; columns begin at 0, TileLayout::further() leads to the others
template <class Layout>
__device__ __forceinline__ std::uint32_t a_offset(const Lane& lane, int first_row) {
    return Layout::offset(first_row + lane.index % 16, lane.index / 16);
}
/// For a 16 × 16 piece of K, 16 keys and 16 channels. A row of K is a column of B = Kᵀ, so that
/// what a lane is given are neighbours in memory: no transposition. r[0], r[1] are B for the first
/// eight keys, r[2], r[3] for the others.
template <class Layout>
__device__ __forceinline__ std::uint32_t k_offset(const Lane& lane, int first_row) {
    const int matrix = lane.index / 8;
    return Layout::offset(first_row + lane.index % 8 + matrix / 2 * 8, matrix % 2);
}
/// For a 16 × 16 piece of V, 16 keys and 16 channels. A row of V is a row of B: transposed on the
/// way. r[0], r[1] are B for the first eight channels, r[2], r[3] for the others.
template <class Layout>
__device__ __forceinline__ std::uint32_t v_offset(const Lane& lane, int first_row) {
    const int matrix = lane.index / 8;
    return Layout::offset(first_row + lane.index % 8 + matrix % 2 * 8, matrix / 2);
}
// [addresses]

// [accumulator-as-operand]
/// Rows g and g + 8, columns 2q, 2q + 1 of two neighbouring accumulators are just what a lane must
/// hold of A for 16 columns: P goes from one product into the next without leaving its lane.
template <class T>
__device__ __forceinline__ void pack_weights(std::uint32_t (&a)[4], const float (&left)[4],
                                             const float (&right)[4]) {
    a[0] = pack<T>(left[0], left[1]);
    a[1] = pack<T>(left[2], left[3]);
    a[2] = pack<T>(right[0], right[1]);
    a[3] = pack<T>(right[2], right[3]);
}
// [accumulator-as-operand]

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
