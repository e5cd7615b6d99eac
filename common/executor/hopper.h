#pragma once
/// @file
/// What a running kernel of common/hopper_language.h calls. Offsets are into the block's dynamic
/// shared memory. All throw Fault.

#include <cstddef>
#include <cstdint>

#include "common/executor/box_copies.h"
#include "common/executor/warpgroup_products.h"

namespace fa::executor {

void init_barrier(std::size_t offset, int arrivals);
void publish_barriers();
/// Arrives, and announces bytes of copies.
void arrive(std::size_t offset, std::uint32_t bytes);
void wait_phase(std::size_t offset, unsigned parity);

/// Begins to load a box. Its place holds NaN from now on; it arrives when no thread can go on
/// otherwise (unless Options::copies_arrive_at_once or Options::shuffle).
void load_box(const BoxCopy& copy);
/// Begins to store a box; shared memory is read when the thread waits for it.
void store_box(const BoxCopy& copy);
void commit_stores();
void wait_stores_read(std::size_t pending);
/// Makes the thread's writes to shared memory visible to copies and products.
void publish_for_copies();

/// setmaxnreg.
void change_registers(int registers, bool increase);
void named_barrier(int id, int threads, bool wait);

/// Begins a product; the 32 lanes meet.
void product(const ProductShape& shape, const ProductRegisters& registers, std::uint32_t a,
             std::uint32_t b);
void fence_products();
void commit_products();
void wait_products(std::size_t pending);

/// Counts the threads' turns.
std::int64_t clock_cycles();

}  // namespace fa::executor
