#pragma once
/// @file
/// What a running kernel of common/hopper_language.h calls. Offsets are into the block's dynamic
/// shared memory. All throw Fault, with the numbers, for
///  - waits that never end: a deadlock, which includes a phase that was missed; named barriers to
///    which warps come with different numbers of threads, or that are left half full;
///  - barriers in shared memory that are used before a barrier of the block (or, another's, of the
///    cluster), by copies before they
///    are published, or touched by other instructions; arrivals or bytes beyond what is expected;
///  - bytes of shared memory that are touched while a box is on its way to them, or before the
///    thread has waited for it; boxes loaded, or bytes written, where another thread, a product or
///    a store may still read: a stage handed back too early. Order comes from barriers of all
///    kinds (Clocks);
///  - products and stores of boxes that read what a thread wrote and did not publish before the
///    barrier that orders the two;
///  - registers of a product that change before its wait; products without fence_products() since
///    the last wait; warps of a warpgroup that do not issue the same;
///  - threads, warps or blocks that end while a store, a product or a box is on its way;
///  - access to another block's memory where there is no cluster, or by an instruction for the own;
///    to a block that has ended, or may have: no cluster_barrier() between that and its end.
///
/// It does not see registers that change between fence_products() and a product, whether the
/// registers that setmaxnreg asks for are there, or races in global memory. A message from one lane
/// counts for all lanes of its warp that have got there (Clocks). The accesses of copies and
/// products to shared memory are not counted. Bytes of the second block of a cluster are told as if
/// its memory followed that of the first, in units of 1024.

#include <cstddef>
#include <cstdint>

#include "common/executor/messages.h"
#include "common/executor/warpgroup_products.h"

namespace fa::executor {

/// mbarrier.init.
void init_barrier(std::size_t offset, int arrivals);
/// Makes the barriers that this thread initialised visible to copies.
void publish_barriers();
/// Arrives, and announces bytes of copies.
void arrive(std::size_t offset, std::uint32_t bytes);
/// Waits until the phase of this parity has ended.
void wait_phase(std::size_t offset, unsigned parity);

/// Begins to load a box. Its place holds NaN from now on; it arrives when no thread can go on
/// otherwise (unless Options::copies_arrive_at_once or Options::shuffle).
void load_box(const BoxCopy& copy);
/// The same to the same place in every block of the cluster whose bit is set in `blocks`. They need
/// not arrive together.
void load_box_for_cluster(const BoxCopy& copy, unsigned blocks);
/// Arrives at a barrier of a block of the cluster.
void arrive_in_cluster(std::size_t block, std::size_t offset);
/// Sends 16 bytes to a block of the cluster and announces them to a barrier there, as late as
/// boxes.
void send(std::size_t block, std::size_t offset, const void* data, std::size_t barrier);
/// Waits until all threads of the cluster have come.
void cluster_barrier();
/// Begins to store a box; shared memory is read when the thread waits for it. Written are whole
/// units of 16 bytes (BoxCopy::written()).
void store_box(const BoxCopy& copy);
/// Ends a group of stores.
void commit_stores();
/// Waits until at most `pending` of the thread's latest groups still read shared memory.
void wait_stores_read(std::size_t pending);
/// Makes the thread's writes to shared memory visible to copies and products.
void publish_for_copies();

/// setmaxnreg.
void change_registers(int registers, bool increase);
/// Arrives at a named barrier with all lanes of the warp, and waits for the rest or not.
void named_barrier(int id, int threads, bool wait);

/// Begins a product; the 32 lanes meet.
void product(const ProductShape& shape, const ProductRegisters& registers, std::uint32_t a,
             std::uint32_t b);
/// Orders the warp's registers before the products that follow.
void fence_products();
/// Ends a group of products.
void commit_products();
/// Waits until at most `pending` of the warp's latest groups are on their way.
void wait_products(std::size_t pending);

/// Counts the threads' turns.
std::int64_t clock_cycles();
/// The thread does nothing while others take so many turns, or until none of them can go on and no
/// copy is on its way.
void sleep(std::int64_t turns);

}  // namespace fa::executor
