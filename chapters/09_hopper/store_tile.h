#pragma once
/// @file
/// The way out by TMA: a warpgroup puts its 64 rows of O where its queries were, and they leave as
/// boxes.

#include "chapters/09_hopper/arguments.h"
#include "chapters/09_hopper/finish_rows.h"
#include "chapters/09_hopper/products.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

// [stage-tile]
/// Where an element of a warpgroup's tile lies, in bytes from its start: as TMA expects it, in
/// boxes of 64 rows, one for 64 channels.
__device__ __forceinline__ std::uint32_t staged_offset(int row, int channel) {
    return static_cast<std::uint32_t>(channel / 64) * box_bytes(64) +
           TileLayout<64, /*SWIZZLED=*/true>::offset(row, channel % 64 / 8) +
           static_cast<std::uint32_t>(channel % 8) * 2;
}

/// Finishes a warp's rows and puts them into the tile; 16 rows and 16 channels an instruction.
/// @param first_row of the warp's 16, counted from at.first_q; the tile's first is a
///                  multiple of 64
template <class T, class Position, Rescale RESCALE, int COLUMN_TILES>
__device__ __forceinline__ void finish_and_stage(const Arguments<T>& a, const Position& at,
                                                 const Lane& lane, int first_row,
                                                 const RowReference<RESCALE>& reference,
                                                 float (&O)[COLUMN_TILES][4], SharedAddress tile) {
    using Layout = TileLayout<64, /*SWIZZLED=*/true>;
    const unsigned bad = finish_rows(a, at, lane, first_row + lane.group, reference, O);
#pragma unroll
    for (int i = 0; i < COLUMN_TILES / 2; ++i) {
        std::uint32_t pieces[4];
        pack_weights<T>(pieces, O[2 * i], O[2 * i + 1]);
        store_matrices(
            tile + static_cast<std::uint32_t>(i / 4) * box_bytes(64) +
                Layout::offset(first_row % 64 + lane.index % 16, i % 4 * 2 + lane.index / 16),
            pieces);
    }
    recompute_rows<8 * COLUMN_TILES>(
        a, at, lane, first_row, bad, [&](int r, int channel, const float(&values)[2]) {
            store_shared(tile + staged_offset(r % 64, channel), pack<T>(values[0], values[1]));
        });
}
// [stage-tile]

// [store-tile]
/// Begins to store the tile that a warpgroup has staged; its first thread has to wait until it is
/// read. A box is written in whole units of 16 bytes, beyond the last channel if head_dim is not a
/// multiple of 8 (measured on an H200); what lies there is the caller's. Each warp then stores its
/// rows by itself.
/// @param first_row of the warp's 16, counted from at.first_q
/// @param barrier   a named barrier of the warpgroup's own
template <int HEAD_DIM, class T, class Position>
__device__ __forceinline__ void store_tile(const HopperArguments<T>& a, const Position& at,
                                           const Lane& lane, int first_row, SharedAddress tile,
                                           int barrier) {
    const bool whole_units = a.head_dim % 8 == 0;
    publish_for_copies();  // to the boxes, or to the queries that come here next
    if (!whole_units) {
        const GlobalPointer<T> o = output_of(a, at);
        const int end = min(first_row + 16, a.len_q - at.first_q);
        warp_barrier();  // all lanes have staged
        for (int row = first_row; row < end; ++row)
            for (int channel = lane.index; channel < a.head_dim; channel += 32)
                o[row * a.o_strides.token + channel] =
                    load_shared<T>(tile + staged_offset(row % 64, channel));
    }
    named_barrier_wait(barrier, 128);  // all four warps have
    if (threadIdx.x % 128 == 0) {
        if (whole_units) {
#pragma unroll
            for (int box = 0; box < HEAD_DIM / 64; ++box)
                store_box(a.o_map, tile + static_cast<std::uint32_t>(box) * box_bytes(64), 64 * box,
                          at.first_q + first_row, at.head_q, at.batch);
        }
        commit_stores();
    }
}
// [store-tile]

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
