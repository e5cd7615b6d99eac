#pragma once
/// @file
/// What the tests of the executor's Hopper share.

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>

#include "common/hopper_language.h"
#include "tests/executor_block.h"

namespace fa {

using executor::Counters;
using executor::Fault;
using executor::make_executor_map;
using executor::Options;

#define CHECK_FAULT(call, text) CHECK_THROWS_WITH_AS(call, doctest::Contains(text), Fault)

/// Orders in each of which a mistake must show.
inline const Options ORDERS[]{
    {}, {.reverse_order = true}, {.copies_arrive_at_once = true}, {.shuffle = 1}};

inline unsigned thread() {
    return threadIdx.x;
}

/// Where the element (row, column) of boxes one behind the other lies, in bytes: the formula of
/// chapter 8, not the executor's.
inline std::uint32_t in_boxes(std::uint32_t row, std::uint32_t column, std::uint32_t box_bytes) {
    return column / 64 * box_bytes + row * 128 + (column % 64 / 8 ^ row % 8) * 16 + column % 8 * 2;
}

/// Runs a kernel of `threads` threads with a barrier for one arrival at byte 4096.
inline void with_barrier(unsigned threads, const std::function<void()>& kernel,
                         const Options& options = {}) {
    run_block(
        threads, 8192,
        [&] {
            if (thread() == 0) {
                init_barrier(shared_address(4096), 1);
                publish_barriers();
            }
            __syncthreads();
            kernel();
        },
        options);
}

}  // namespace fa
