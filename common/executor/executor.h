#pragma once
/// @file
/// Runs CUDA kernels on the CPU, from the same source, to show what they do and to catch what a GPU
/// would let pass. Every CUDA thread is a fiber; threads of a block run one after another as far as
/// their next barrier. The executor
///  - counts the bytes a kernel moves to and from global memory, its accesses to shared memory, the
///    bank conflicts among them, and its barriers;
///  - fails on a barrier that not all threads of the block reach, on a warp instruction whose lanes
///    do not meet, on an access outside an array or not aligned to its size, and on two threads
///    that touch the same word of shared memory, one of them writing, with no barrier between;
///  - fills shared memory with NaN before each block, and the target of an asynchronous copy until
///    the copy has been waited for;
///  - of Hopper's instructions (hopper.h), makes copies of boxes and products as late as it may,
///    and fails on what would hang or could be wrong on the hardware.
///
/// It says nothing about time. Kernels see it through common/executor/device_language.h.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace fa::executor {

/// As CUDA's dim3.
struct Dim3 {
    unsigned x = 1, y = 1, z = 1;
    std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

/// What one launch did.
struct Counters {
    std::uint64_t blocks = 0;
    std::uint64_t threads_per_block = 0;
    std::uint64_t shared_bytes_per_block = 0;
    std::uint64_t global_load_bytes = 0;
    std::uint64_t global_store_bytes = 0;
    std::uint64_t barriers = 0;  ///< block-wide barriers, once per block; one of a cluster counts
                                 ///< for each of its blocks
    std::uint64_t shared_instructions = 0;  ///< warp-wide shared-memory accesses (if counted)
    std::uint64_t shared_wavefronts = 0;    ///< clocks those take: 1 each without conflicts, 2 or 4
                                            ///< for 16-byte accesses (if counted)
    std::uint64_t shared_ideal = 0;         ///< clocks they would take with no conflict
    std::uint64_t product_flop = 0;         ///< operations of products by warpgroups

    /// Clocks lost to bank conflicts.
    std::uint64_t bank_conflicts() const { return shared_wavefronts - shared_ideal; }
    Counters& operator+=(const Counters& other);
};

/// How to run.
struct Options {
    bool reverse_order = false;  ///< last thread first: finds dependencies on the order of threads
    bool count_banks = false;    ///< record every shared access; slower, needs memory
    bool copies_arrive_at_once = false;  ///< asynchronous copies do not wait to be waited for
    std::uint64_t shuffle = 0;  ///< not 0: warps in a random order, some warps and lanes delayed,
                                ///< boxes at random moments; the same for the same number
    unsigned cluster = 1;       ///< blocks in x that run at the same time and reach each other's
                                ///< shared memory (hopper.h); the grid is a multiple of it
    int workers = 0;            ///< OS threads that run blocks; 0: as many as OpenMP offers
};

/// A fault of the kernel: what, and in which block and thread.
class Fault : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// The largest block, as on the GPU.
inline constexpr unsigned MAX_THREADS = 1024;
inline constexpr unsigned WARP_SIZE = 32;
/// The largest cluster that every GPU with clusters takes (CUDA C++ Programming Guide).
inline constexpr unsigned MAX_CLUSTER = 8;

/// Runs `kernel` once for every thread of every block.
/// @param shared_bytes dynamic shared memory of each block
/// @throws Fault on the first fault found; std::invalid_argument for a block of 0 or over 1024
///         threads or not a multiple of 32, and for a grid that is no whole number of
///         clusters, or for clusters of 0 or over MAX_CLUSTER blocks
Counters run(Dim3 grid, Dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel,
             const Options& options = {});

// ---- What a running kernel calls, by way of device_language.h.

/// Coordinates of the running thread, set before it resumes.
struct ThreadPosition {
    Dim3 thread, block, block_dim, grid_dim;
    unsigned block_in_cluster = 0;
};
const ThreadPosition& position();

/// __syncthreads(). `line` tells one barrier from another.
void block_barrier(const char* file, int line);

/// __syncwarp(), as an operation.
inline constexpr int WARP_BARRIER = -1;

/// What a lane can leave at a rendezvous of its warp, and what it can be given.
inline constexpr std::size_t SLOT_BYTES = 32;

/// A rendezvous of the 32 lanes of a warp. Each lane leaves up to SLOT_BYTES bytes and `operation`;
/// returned are the 32 lanes' slots, SLOT_BYTES apart, valid until the lane's next call.
/// @param operation WARP_BARRIER, which also orders the lanes' accesses to shared memory, or any
///                  number that tells one warp instruction from another
/// @throws Fault if the lanes come with different operations
const std::byte* warp_exchange(int operation, const void* value, std::size_t size);

/// A warp instruction that computes something of all lanes' operands. `compute` is called once, by
/// the last lane to arrive: it reads 32 slots of operands and writes 32 slots of results.
/// @return this lane's result, valid until the lane's next call
/// @throws as warp_exchange()
const std::byte* warp_compute(int operation, const void* value, std::size_t size,
                              void (*compute)(const std::byte* operands, std::byte* results));

/// __syncthreads_or(): as block_barrier(), and returns whether any thread of the block came with
/// `vote`.
bool block_any(const char* file, int line, bool vote);

/// An asynchronous copy of 16 bytes to `offset` in shared memory. The bytes there are NaN from now
/// on, and the copy arrives when the thread waits for it, not earlier (unless
/// Options::copies_arrive_at_once).
/// @param data 16 bytes, copied now
void copy_async(std::size_t offset, const void* data);
/// Ends a group of copies, empty or not.
void commit_copies();
/// Waits until at most `pending` of the thread's latest groups are still on their way.
void wait_copies(std::size_t pending);

/// Start and size of the running block's dynamic shared memory. Offsets are from there.
std::byte* shared_base();
std::size_t shared_size();

/// Notes an access of `size` bytes at `offset` into shared memory; checks bounds, alignment, races.
void note_shared(std::size_t offset, std::size_t size, bool is_write);

/// Notes bytes moved to or from global memory.
void note_global(std::size_t size, bool is_write);

/// Throws a Fault that names block and thread.
[[noreturn]] void fail(const std::string& what);

}  // namespace fa::executor
