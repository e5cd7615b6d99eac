#pragma once
/// @file
/// A tile of 16-bit elements in shared memory: where its 16-byte chunks lie, and how all threads of
/// a block fill it, at once or asynchronously.

#include "common/tensor_core_language.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

// [layout]
/// Rows of COLUMNS elements (a multiple of 64), in chunks of 8 elements or 16 bytes. Swizzled,
/// chunk c of row r lies where chunk c ^ (r % 8) would lie: the same chunk of eight successive rows
/// is in eight different places of 128 bytes, that is, in all 32 banks.
template <int COLUMNS, bool SWIZZLED>
struct TileLayout {
    static constexpr int ROW_BYTES = 2 * COLUMNS, CHUNKS = COLUMNS / 8;
    static_assert(COLUMNS % 64 == 0);

    __device__ static __forceinline__ std::uint32_t offset(int row, int chunk) {
        const int place = SWIZZLED ? chunk ^ (row & 7) : chunk;
        return static_cast<std::uint32_t>(row * ROW_BYTES + place * 16);
    }
    /// From the address of chunk 0 or 1 of a row to that `chunks` further, an even number: one XOR,
    /// and the rest is a constant. Tiles start at a multiple of 128 bytes.
    __device__ static __forceinline__ SharedAddress further(SharedAddress address, int chunks) {
        const auto n = static_cast<std::uint32_t>(chunks);
        return SWIZZLED ? (address ^ (n % 8 * 16)) + n / 8 * 128 : address + n * 16;
    }
};
// [layout]

/// Eight elements of a row, from the column c on; zeros in rows and columns that are not there.
/// @param chunked rows_are_chunked()
template <class T>
__device__ __forceinline__ Packed<T, 8> load_chunk(GlobalPointer<const T> source,
                                                   std::int64_t stride, int row, int rows, int c,
                                                   int head_dim, bool chunked) {
    Packed<T, 8> chunk{};
    if (row >= rows) return chunk;
    if (chunked) {
        if (c < head_dim) chunk = load_packed<8>(source + (row * stride + c));
    } else {
#pragma unroll
        for (int e = 0; e < 8; ++e)
            if (c + e < head_dim) chunk[e] = source[row * stride + c + e];
    }
    return chunk;
}

/// The part of a tile that one of THREADS threads is in charge of: one column of chunks, every
/// ROWS_AT_ONCE-th row.
template <int ROWS, class Layout, int THREADS>
struct TileCopy {
    static constexpr int CHUNKS = Layout::CHUNKS;
    static constexpr int ROWS_AT_ONCE = THREADS / CHUNKS;
    static constexpr int TIMES = ROWS / ROWS_AT_ONCE;
    static_assert(THREADS % CHUNKS == 0 && ROWS % ROWS_AT_ONCE == 0);

    int row, chunk;  ///< the first of this thread

    __device__ __forceinline__ TileCopy()
        : row(static_cast<int>(threadIdx.x) / CHUNKS),
          chunk(static_cast<int>(threadIdx.x) % CHUNKS) {}

    /// The address of this thread's i-th chunk.
    __device__ __forceinline__ SharedAddress place(SharedAddress tile, int i) const {
        return tile + Layout::offset(row + i * ROWS_AT_ONCE, chunk);
    }

    // [load]
    /// Through registers: complete when the thread goes on.
    /// @param source the tile's first row, `rows` of which are there
    template <class T>
    __device__ __forceinline__ void load(SharedAddress tile, GlobalPointer<const T> source,
                                         std::int64_t stride, int rows, int head_dim,
                                         bool chunked) const {
#pragma unroll
        for (int i = 0; i < TIMES; ++i)
            store_shared(place(tile, i), load_chunk<T>(source, stride, row + i * ROWS_AT_ONCE, rows,
                                                       8 * chunk, head_dim, chunked));
    }
    // [load]

    // [copy]
    /// Past the registers: begins to copy. Rows and channels that are not there become zeros.
    /// @tparam WHOLE all ROWS rows are there
    template <bool WHOLE, class T>
    __device__ __forceinline__ void copy(SharedAddress tile, GlobalPointer<const T> source,
                                         std::int64_t stride, int rows, int head_dim) const {
        const bool there = 8 * chunk < head_dim;
        const GlobalPointer<const T> from = source + (row * stride + 8 * chunk);
#pragma unroll
        for (int i = 0; i < TIMES; ++i) {
            const bool inside = there && (WHOLE || row + i * ROWS_AT_ONCE < rows);
            copy_async<T>(place(tile, i), from + i * ROWS_AT_ONCE * stride, inside ? 16 : 0);
        }
    }
    // [copy]

    /// Multiplies this thread's chunks by −1 or 0: the sign of the scale goes with Q (chapter 5).
    template <class T>
    __device__ __forceinline__ void multiply(SharedAddress tile, float sign) const {
        for (int i = 0; i < TIMES; ++i) {
            auto chunk8 = load_shared<Packed<T, 8>>(place(tile, i));
#pragma unroll
            for (int e = 0; e < 8; ++e) chunk8[e] = from_float<T>(to_float(chunk8[e]) * sign);
            store_shared(place(tile, i), chunk8);
        }
    }
};

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
