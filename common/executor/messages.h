#pragma once
/// @file
/// What is on its way into shared memory: boxes, and what one block of a cluster sends another.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <variant>

#include "common/executor/box_copies.h"

namespace fa::executor {

/// 16 bytes for a block of the cluster (PTX ISA, "st.async").
struct Message {
    static constexpr std::size_t BYTES = 16;

    std::byte data[BYTES];
    std::size_t shared;   ///< where they go
    std::size_t barrier;  ///< where they count
    std::size_t thread;   ///< that sent them

    /// Bytes of shared memory that it fills.
    std::uint32_t bytes() const { return BYTES; }
    /// Arrives. @return bytes read from global memory
    std::size_t load(std::byte* memory) const {
        std::memcpy(memory + shared, data, BYTES);
        return 0;
    }
};

/// One of the two.
using Arrival = std::variant<BoxCopy, Message>;

}  // namespace fa::executor
