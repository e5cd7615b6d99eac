#pragma once
/// @file
/// Copies of boxes between global and shared memory, as Hopper's tensor memory accelerator makes
/// them: what a tensor map says, where an element of a box lies, and what is on its way.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "common/executor/swizzle.h"

namespace fa::executor {

/// A tensor [batch, heads, tokens, channels] of 16-bit elements, and boxes of 64 channels × `rows`
/// tokens of it. Strides are in elements; that of channels is 1.
struct TensorMap {
    const std::uint16_t* elements = nullptr;
    std::int64_t channels = 0, tokens = 0, heads = 0, batch = 0;
    std::int64_t token_stride = 0, head_stride = 0, batch_stride = 0;
    int rows = 0;
    std::uint16_t* written = nullptr;  ///< the same elements if boxes may be stored

    static constexpr int BOX_CHANNELS = 64;
    static constexpr int MOST_ROWS = 256;

    std::uint32_t box_bytes() const { return static_cast<std::uint32_t>(rows) * 128; }
    /// Elements from the first to the last, gaps included.
    std::int64_t size() const {
        return (batch - 1) * batch_stride + (heads - 1) * head_stride +
               (tokens - 1) * token_stride + channels;
    }
};

/// A map of elements that are only read.
inline TensorMap make_executor_map(const void* elements, std::array<std::int64_t, 4> extents,
                                   std::array<std::int64_t, 3> strides, int rows) {
    return {static_cast<const std::uint16_t*>(elements),
            extents[0],
            extents[1],
            extents[2],
            extents[3],
            strides[0],
            strides[1],
            strides[2],
            rows,
            nullptr};
}
/// A map of elements that are read and written.
/// @param extents channels, tokens, heads, batch
/// @param strides of a token, a head, a batch entry, in elements
inline TensorMap make_executor_map(void* elements, std::array<std::int64_t, 4> extents,
                                   std::array<std::int64_t, 3> strides, int rows) {
    TensorMap map = make_executor_map(static_cast<const void*>(elements), extents, strides, rows);
    map.written = static_cast<std::uint16_t*>(elements);
    return map;
}

/// One box of a tensor and its place in shared memory.
struct BoxCopy {
    static constexpr std::int64_t UNIT = 8;  ///< elements, 16 bytes

    TensorMap map;
    std::size_t shared;       ///< a multiple of 1024
    std::array<int, 4> at;    ///< channel, token, head, batch of the box's first element
    std::size_t barrier = 0;  ///< of a load: the offset of the barrier where its bytes arrive
    std::size_t thread = 0;   ///< that issued it

    /// @return what is wrong with the map or the place, or nothing
    std::string problem(std::size_t shared_bytes) const {
        if (map.rows < 1 || map.rows > TensorMap::MOST_ROWS)
            return fmt::format("boxes of {} rows: 1 … {} are possible", map.rows,
                               TensorMap::MOST_ROWS);
        if (reinterpret_cast<std::uintptr_t>(map.elements) % 16 != 0 || map.token_stride % 8 != 0 ||
            map.head_stride % 8 != 0 || map.batch_stride % 8 != 0)
            return "a tensor map's elements and strides are not multiples of 16 bytes";
        if (shared % BOX_ALIGNMENT != 0)
            return fmt::format("a box at byte {} of shared memory, not a multiple of {}", shared,
                               BOX_ALIGNMENT);
        if (shared + map.box_bytes() > shared_bytes)
            return fmt::format("a box at bytes {}..{} of {} of shared memory", shared,
                               shared + map.box_bytes(), shared_bytes);
        return {};
    }

    /// @return what is wrong with storing the box, beyond problem(), or nothing
    std::string store_problem() const {
        if (map.written == nullptr) return "a box is stored by a map that is for loads only";
        const Part part = written();
        if (part.rows == 0) return {};
        const std::int64_t last =
            element(part.first_row + part.rows - 1, part.first_channel + part.channels - 1);
        if (last < map.size()) return {};
        return fmt::format(
            "a box is stored in units of 16 bytes: write of element {} of a global array of {}, "
            "since {} channels are no whole number of units",
            last, map.size(), map.channels);
    }

    /// Some rows and channels of the box, and from which on.
    struct Part {
        int first_row, rows, first_channel, channels;
        std::size_t bytes() const {
            return std::size_t{2} * static_cast<std::size_t>(rows) *
                   static_cast<std::size_t>(channels);
        }
    };
    /// What lies within the tensor: a load reads that much.
    Part inside() const { return within(map.channels); }
    /// What a store writes: whole units of 16 bytes of a row, and so up to 7 elements behind the
    /// last channel if the number of channels is not a multiple of 8 (measured on an H200). Rows,
    /// heads and batch entries that are not there are not written.
    Part written() const { return within((map.channels + UNIT - 1) / UNIT * UNIT); }
    /// The part of the box in a tensor of so many channels.
    Part within(std::int64_t channels) const {
        const auto range = [](int from, int size, std::int64_t extent, int& first) {
            const std::int64_t begin = std::max<std::int64_t>(from, 0);
            const std::int64_t end = std::min<std::int64_t>(std::int64_t{from} + size, extent);
            first = static_cast<int>(begin - from);
            return static_cast<int>(std::max<std::int64_t>(end - begin, 0));
        };
        Part part{};
        part.channels = range(at[0], TensorMap::BOX_CHANNELS, channels, part.first_channel);
        part.rows = range(at[1], map.rows, map.tokens, part.first_row);
        if (at[2] < 0 || at[2] >= map.heads || at[3] < 0 || at[3] >= map.batch || part.rows == 0 ||
            part.channels == 0)
            part = {};
        return part;
    }
    /// Bytes of shared memory that it fills.
    std::uint32_t bytes() const { return map.box_bytes(); }
    /// Index of the box's element in row r and column c.
    std::int64_t element(int r, int c) const {
        return at[0] + c + (std::int64_t{at[1]} + r) * map.token_stride + at[2] * map.head_stride +
               at[3] * map.batch_stride;
    }
    /// Offset of the same in shared memory.
    std::size_t place(int r, int c) const {
        return swizzled(shared + static_cast<std::size_t>(r) * 128 +
                        static_cast<std::size_t>(c) * 2);
    }

    /// Global to shared memory. @return bytes read from global memory
    std::size_t load(std::byte* shared_base) const {
        std::memset(shared_base + shared, 0, map.box_bytes());
        const Part part = inside();
        for (int r = part.first_row; r < part.first_row + part.rows; ++r)
            for (int c = part.first_channel; c < part.first_channel + part.channels; ++c)
                std::memcpy(shared_base + place(r, c), map.elements + element(r, c), 2);
        return part.bytes();
    }
    /// Shared to global memory. @return bytes written to global memory
    std::size_t store(const std::byte* shared_base) const {
        const Part part = written();
        for (int r = part.first_row; r < part.first_row + part.rows; ++r)
            for (int c = part.first_channel; c < part.first_channel + part.channels; ++c)
                std::memcpy(map.written + element(r, c), shared_base + place(r, c), 2);
        return part.bytes();
    }
};

/// The stores of boxes of one thread, in groups.
class BoxStores {
  public:
    /// A store that was issued.
    struct Store {
        BoxCopy copy;
        std::uint32_t sequence;  ///< among the block's asynchronous reads
    };
    /// Adds a store to the group that is open.
    void add(const Store& store) { stores_.push_back(store); }
    /// Ends the group.
    void commit() { group_ends_.push_back(stores_.size()); }
    bool empty() const { return stores_.empty(); }
    const Store& front() const { return stores_.front(); }

    /// Calls `read(store)` for all of all but the last `pending` groups.
    template <class Read>
    void wait(std::size_t pending, Read&& read) {
        if (group_ends_.size() <= pending) return;
        const std::size_t groups = group_ends_.size() - pending, end = group_ends_[groups - 1];
        for (std::size_t i = 0; i < end; ++i) read(stores_[i]);
        stores_.erase(stores_.begin(), stores_.begin() + static_cast<std::ptrdiff_t>(end));
        group_ends_.erase(group_ends_.begin(),
                          group_ends_.begin() + static_cast<std::ptrdiff_t>(groups));
        for (std::size_t& group_end : group_ends_) group_end -= end;
    }

  private:
    std::vector<Store> stores_;
    std::vector<std::size_t> group_ends_;
};

}  // namespace fa::executor
