#pragma once
/// @file
/// A block in execution, or the blocks of a cluster: their threads as fibers, who waits for what,
/// and whose turn it is.

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "common/executor/async_accesses.h"
#include "common/executor/async_copies.h"
#include "common/executor/bank_counter.h"
#include "common/executor/barriers.h"
#include "common/executor/box_copies.h"
#include "common/executor/clocks.h"
#include "common/executor/executor.h"
#include "common/executor/fiber.h"
#include "common/executor/messages.h"
#include "common/executor/race_detector.h"
#include "common/executor/warpgroup_products.h"

namespace fa::executor {

/// Numbers of the warp instructions that the executor itself makes of Hopper's. The kernel
/// languages have those below 100.
enum HopperMeeting {
    FENCE_PRODUCTS = 100,
    COMMIT_PRODUCTS,
    WAIT_PRODUCTS,              // + pending groups
    NAMED_WAIT = 200,           // + number of the barrier
    NAMED_ARRIVE = 300,         // + number of the barrier
    INCREASE_REGISTERS = 1000,  // + registers
    DECREASE_REGISTERS = 2000,  // + registers
    PRODUCT = 10000             // + code of its shape
};

/// One block after the other, on one OS thread, or one cluster of blocks after the other: their
/// threads are then numbered through, and so are the bytes of their shared memory, in which each
/// block's begins at a multiple of 1024. Offsets that threads name are into their own block's; what
/// is kept here is at() of them.
class Block {
  public:
    Block(Dim3 grid, Dim3 block, std::size_t shared_bytes, const Options& options);

    /// Runs one block of the grid, or one cluster.
    void run(std::uint64_t linear_cluster, const std::function<void()>& kernel);
    /// What the blocks did so far.
    Counters counters() const;

    /// @cond what the running thread calls; executor.h says what it does
    void barrier(const char* file, int line);
    bool any(const char* file, int line, bool vote);
    using Compute = void (*)(const std::byte*, std::byte*);
    const std::byte* exchange(int operation, const void* value, std::size_t size,
                              Compute compute = nullptr);
    void copy_async(std::size_t offset, const void* data);
    void commit_copies() { copies_[current_].commit(); }
    void wait_copies(std::size_t pending);
    void note_shared(std::size_t offset, std::size_t size, bool is_write) {
        if ((offset & (size - 1)) != 0)  // sizes are powers of two
            fail(fmt::format("shared access of {} bytes at offset {}, not aligned", size, offset));
        if (offset + size > shared_bytes_)
            fail(fmt::format("shared access at bytes {}..{} of {}", offset, offset + size,
                             shared_bytes_));
        note_race(at(offset), size, is_write);
        if (banks_) banks_->access(current_, offset, size);
    }
    void note_global(std::size_t size, bool is_write) {
        (is_write ? counters_.global_store_bytes : counters_.global_load_bytes) += size;
    }
    std::byte* shared_base() { return memory() + at(0); }
    std::size_t shared_size() const { return shared_bytes_; }
    const ThreadPosition& position() const { return position_; }

    // The same for Hopper (hopper.h).
    void init_barrier(std::size_t offset, int arrivals);
    void publish_barriers();
    void arrive(std::size_t offset, std::uint32_t bytes);
    void wait_phase(std::size_t offset, unsigned parity);
    void load_box(const BoxCopy& copy);
    void store_box(const BoxCopy& box);
    void load_box_for_cluster(const BoxCopy& copy, unsigned blocks);
    void arrive_in_cluster(std::size_t block, std::size_t offset);
    void send(std::size_t block, std::size_t offset, const void* data, std::size_t barrier);
    void cluster_barrier();
    void commit_stores() { hopper().stores[current_].commit(); }
    void wait_stores_read(std::size_t pending);
    void publish_for_copies();
    void change_registers(int registers, bool increase);
    void named_barrier(int id, int threads, bool wait);
    void product(const ProductShape& shape, const ProductRegisters& registers, std::uint32_t a,
                 std::uint32_t b);
    void fence_products();
    void commit_products();
    void wait_products(std::size_t pending);
    std::int64_t clock_cycles() const { return turns_; }
    void sleep(std::int64_t turns);
    /// @endcond

  private:
    /// Where a thread stands between two of its turns.
    enum class Wait { none, warp, block, cluster, phase, named, sleep, done };

    struct Thread {
        Wait wait = Wait::none;
        const char* file = nullptr;  ///< of the barrier of the block it waits at
        int line = 0;
        unsigned warp_phase = 0;          ///< of the rendezvous it waits at
        PhaseBarrier* barrier = nullptr;  ///< it waits at, for the phase of this parity
        unsigned parity = 0;
        int named = 0;  ///< number of the named barrier it waits at
        std::uint64_t generation = 0;
        std::int64_t wakes_at = 0;  ///< this many turns, if it sleeps
    };

    /// The rendezvous of one warp. Two sets of slots: a lane may bring its next value while slower
    /// lanes still read the last ones.
    struct Warp {
        std::byte slots[2][WARP_SIZE][SLOT_BYTES];
        std::byte results[2][WARP_SIZE][SLOT_BYTES];
        int operation = 0;
        unsigned arrived = 0;
        unsigned phase = 0;
    };

    /// What a warp's instructions for warpgroups leave.
    struct WarpRole {
        WarpProducts products;
        bool fenced = false;             ///< no registers were written by a wait since the fence
        std::uint64_t instructions = 0;  ///< how many, and a hash of them
        std::uint64_t hash = 0;
        Knowledge common;  ///< to its 32 lanes; empty if it has to be found again
    };

    /// Made when a kernel uses the first instruction of Hopper.
    struct Hopper {
        Hopper(std::size_t blocks, std::size_t bytes, std::size_t threads, Clocks& clocks,
               RaceDetector& races)
            : barriers(blocks),
              stores(threads),
              roles(threads / WARP_SIZE),
              publications(threads),
              accesses(bytes, clocks, races) {}
        Barriers barriers;
        std::deque<Arrival> loads;  ///< on their way
        std::vector<BoxStores> stores;
        std::vector<WarpRole> roles;
        std::vector<std::vector<Time>> publications;  ///< by each thread, on its warp's clock
        std::uint32_t sequence = 0;                   ///< of asynchronous reads
        AsyncAccesses accesses;
    };
    Hopper& hopper();
    void start_hopper();
    void end_hopper();
    PhaseBarrier& barrier_at(std::size_t place);
    void begin_load(const Arrival& arrival);
    void reach(std::size_t block);
    void deliver();
    const Time* common_knowledge(std::size_t warp);
    void forget_common_knowledge(std::size_t warp) {
        if (hopper_) hopper_->roles[warp].common.clear();
    }
    void note_instruction(std::size_t warp, std::uint64_t what);

    /// The bytes of all blocks.
    std::byte* memory() {
        const auto address = reinterpret_cast<std::uintptr_t>(shared_.data());
        return shared_.data() + (16 - address % 16) % 16;
    }
    std::size_t blocks() const { return options_.cluster; }
    /// The number of a warp in its own block.
    std::size_t warp_in_block(std::size_t warp) const {
        return warp % (block_threads_ / WARP_SIZE);
    }
    std::size_t block_of(const Thread& thread) const {
        return static_cast<std::size_t>(&thread - threads_.data()) / block_threads_;
    }
    std::size_t own_block() const { return position_.block_in_cluster; }
    /// The place of a byte of a block's memory in that of all.
    std::size_t at(std::size_t block, std::size_t offset) const {
        return block * block_bytes_ + offset;
    }
    /// The same for the running block.
    std::size_t at(std::size_t offset) const { return at(own_block(), offset); }

    // Whose turn it is (block.cpp).
    void warps_in_turn();
    void warps_at_random();
    bool run_warp(std::size_t warp, bool once);
    bool runnable(const Thread& thread) const;
    void check_lanes(std::size_t warp);
    bool end_round();
    bool wake_all();
    bool together(const Thread& a, const Thread& b) const;
    void check_block(std::size_t block);
    bool open_block_barrier(std::size_t block);
    void open_cluster_barrier();
    void open_barrier(std::size_t first, std::size_t threads);
    void end_of_banks(std::size_t first_warp, std::size_t warps);
    [[noreturn]] void deadlock();
    void pause(Wait wait);
    /// With Options::shuffle: lets others go first, now and then.
    void maybe_yield();
    void set_current(std::size_t thread);
    std::string where(const Thread& thread) const;

    /// The 32 lanes meet; the last to come calls last().
    template <class Last>
    unsigned meet(int operation, const void* value, std::size_t size, Last&& last) {
        const std::size_t w = current_ / WARP_SIZE;
        Warp& warp = warps_[w];
        if (warp.arrived == 0) warp.operation = operation;
        if (warp.operation != operation)
            fail("lanes of a warp meet in different warp instructions");
        const unsigned phase = warp.phase;
        if (size > 0) std::memcpy(warp.slots[phase & 1][current_ % WARP_SIZE], value, size);
        if (++warp.arrived == WARP_SIZE) {
            warp.arrived = 0;
            ++warp.phase;
            if (banks_) banks_->end_of_phase(w);
            last(warp, phase & 1);
        } else {
            threads_[current_].warp_phase = phase;
            pause(Wait::warp);
        }
        return phase & 1;
    }

    void note_race(std::size_t place, std::size_t size, bool is_write) {
        if (hopper_) note_beside_async(place, size, is_write);
        if (!races_.access(current_, place, size, is_write))
            fail(
                fmt::format("race in shared memory at byte {}: two threads, one of them writing, "
                            "and no barrier between",
                            place));
    }
    void note_beside_async(std::size_t place, std::size_t size, bool is_write);
    void check(const std::string& problem) {
        if (!problem.empty()) fail(problem);
    }

    std::size_t block_threads_, shared_bytes_;
    std::size_t block_bytes_;  ///< from one block's memory to the next one's
    std::vector<std::byte> shared_;
    std::vector<Fiber> fibers_;
    std::vector<Thread> threads_;
    std::vector<Warp> warps_;
    std::vector<AsyncCopies> copies_;
    /// Of a block's barrier ahead, and of its last one.
    struct Votes {
        bool ahead = false, last = false;
    };
    std::vector<Votes> votes_;
    std::vector<bool> reached_;  // blocks, by others since the last barrier of the cluster
    Clocks clocks_;
    RaceDetector races_;
    std::optional<Hopper> hopper_;
    std::uint32_t first_epoch_ = 0;  // of the race detector in this block
    std::optional<BankCounter> banks_;
    Options options_;
    Counters counters_;
    ThreadPosition position_;
    Dim3 first_block_;  // of the cluster
    std::size_t current_ = 0;
    std::int64_t turns_ = 0;
    std::minstd_rand random_;
    std::vector<unsigned> asleep_;  // for how many rounds each warp sits out
};

}  // namespace fa::executor
