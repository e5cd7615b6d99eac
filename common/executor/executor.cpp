#include "common/executor/executor.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "common/executor/async_copies.h"
#include "common/executor/bank_counter.h"
#include "common/executor/fiber.h"
#include "common/executor/race_detector.h"

namespace fa::executor {
namespace {

/// Where a thread stands between two of its turns.
enum class Wait { none, warp, block, done };

struct Thread {
    Fiber fiber;
    Wait wait = Wait::none;
    const char* file = nullptr;  ///< of the barrier it waits at
    int line = 0;
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

/// One block in execution.
class Block {
  public:
    Block(Dim3 grid, Dim3 block, std::size_t shared_bytes, const Options& options)
        : shared_(shared_bytes + 16),
          shared_bytes_(shared_bytes),
          threads_(block.count()),
          warps_(block.count() / WARP_SIZE),
          copies_(block.count()),
          races_(shared_bytes, warps_.size()),
          options_(options) {
        position_.block_dim = block;
        position_.grid_dim = grid;
        if (options.count_banks) banks_.emplace(threads_.size());
    }

    void run(std::uint64_t linear_block, const std::function<void()>& kernel) {
        const Dim3 grid = position_.grid_dim;
        position_.block = {static_cast<unsigned>(linear_block % grid.x),
                           static_cast<unsigned>(linear_block / grid.x % grid.y),
                           static_cast<unsigned>(linear_block / grid.x / grid.y)};
        std::memset(shared_.data(), 0xff, shared_.size());  // a NaN in every type
        races_.block_barrier();                             // blocks follow one another
        for (Warp& warp : warps_) warp.operation = 0, warp.arrived = 0, warp.phase = 0;
        for (AsyncCopies& copies : copies_) copies = {};
        any_vote_ = false;
        for (Thread& thread : threads_) {
            thread.wait = Wait::none;
            thread.fiber.start(kernel);
        }
        while (!round()) {
        }
    }

    // What the running thread calls.
    void barrier(const char* file, int line) {
        Thread& thread = threads_[current_];
        thread.file = file;
        thread.line = line;
        pause(Wait::block);
    }

    bool any(const char* file, int line, bool vote) {
        any_vote_ |= vote;
        barrier(file, line);
        return last_vote_;
    }

    using Compute = void (*)(const std::byte*, std::byte*);

    /// @return the warp's slots of operands, or of results if there is something to compute
    const std::byte* exchange(int operation, const void* value, std::size_t size,
                              Compute compute = nullptr) {
        Warp& warp = warps_[current_ / WARP_SIZE];
        if (warp.arrived == 0) warp.operation = operation;
        if (warp.operation != operation)
            fail("lanes of a warp meet in different warp instructions");
        const unsigned phase = warp.phase;
        if (size > 0) std::memcpy(warp.slots[phase & 1][current_ % WARP_SIZE], value, size);
        if (++warp.arrived == WARP_SIZE) {
            warp.arrived = 0;
            ++warp.phase;
            // A shuffle exchanges registers; it does not order accesses to memory.
            if (operation == WARP_BARRIER) races_.warp_barrier(current_ / WARP_SIZE);
            if (banks_) banks_->end_of_phase(current_ / WARP_SIZE);
            if (compute != nullptr)
                compute(&warp.slots[phase & 1][0][0], &warp.results[phase & 1][0][0]);
        } else {
            while (warp.phase == phase) pause(Wait::warp);
        }
        return compute != nullptr ? &warp.results[phase & 1][current_ % WARP_SIZE][0]
                                  : &warp.slots[phase & 1][0][0];
    }

    void copy_async(std::size_t offset, const void* data) {
        note_shared(offset, AsyncCopies::BYTES, /*is_write=*/true);
        if (options_.copies_arrive_at_once) {
            std::memcpy(shared_base() + offset, data, AsyncCopies::BYTES);
            return;
        }
        std::memset(shared_base() + offset, 0xff, AsyncCopies::BYTES);
        copies_[current_].add(offset, data);
    }
    void commit_copies() { copies_[current_].commit(); }
    void wait_copies(std::size_t pending) {
        copies_[current_].wait(pending, [&](std::size_t offset, const std::byte* data) {
            // The hardware may have written at any moment since the copy was issued.
            note_race(offset, AsyncCopies::BYTES, /*is_write=*/true);
            std::memcpy(shared_base() + offset, data, AsyncCopies::BYTES);
        });
    }

    void note_shared(std::size_t offset, std::size_t size, bool is_write) {
        if ((offset & (size - 1)) != 0)  // sizes are powers of two
            fail(fmt::format("shared access of {} bytes at offset {}, not aligned", size, offset));
        if (offset + size > shared_bytes_)
            fail(fmt::format("shared access at bytes {}..{} of {}", offset, offset + size,
                             shared_bytes_));
        note_race(offset, size, is_write);
        if (banks_) banks_->access(current_, offset, size);
    }

    void note_global(std::size_t size, bool is_write) {
        (is_write ? counters_.global_store_bytes : counters_.global_load_bytes) += size;
    }

    std::byte* shared_base() {
        const auto address = reinterpret_cast<std::uintptr_t>(shared_.data());
        return shared_.data() + (16 - address % 16) % 16;
    }
    std::size_t shared_size() const { return shared_bytes_; }
    const ThreadPosition& position() const { return position_; }

    Counters counters() const {
        Counters result = counters_;
        if (banks_) banks_->add_to(result);
        return result;
    }

  private:
    void note_race(std::size_t offset, std::size_t size, bool is_write) {
        if (!races_.access(current_, offset, size, is_write))
            fail(
                fmt::format("race in shared memory at byte {}: two threads, one of them writing, "
                            "and no barrier between",
                            offset));
    }

    /// Lets every thread run as far as it can, then opens the barrier. @return true if all are
    /// done.
    bool round() {
        const std::size_t warps = warps_.size();
        for (std::size_t i = 0; i < warps; ++i)
            run_warp(options_.reverse_order ? warps - 1 - i : i);

        const Thread& first = threads_.front();
        for (std::size_t i = 0; i < threads_.size(); ++i) {
            const Thread& thread = threads_[i];
            if (thread.wait == first.wait &&
                (first.wait == Wait::done ||
                 (thread.line == first.line && std::strcmp(thread.file, first.file) == 0)))
                continue;
            current_ = i;
            set_position();
            fail(fmt::format("divergence at a barrier: thread 0 {}, this one {}", where(first),
                             where(thread)));
        }
        if (banks_)
            for (std::size_t warp = 0; warp < warps; ++warp) banks_->end_of_phase(warp);
        if (first.wait == Wait::done) return true;
        ++counters_.barriers;
        races_.block_barrier();
        last_vote_ = std::exchange(any_vote_, false);
        for (Thread& thread : threads_) thread.wait = Wait::none;
        return false;
    }

    /// Runs the 32 lanes until each waits for the block or is done.
    void run_warp(std::size_t warp) {
        bool progress = true;
        while (progress) {
            progress = false;
            for (unsigned i = 0; i < WARP_SIZE; ++i) {
                const std::size_t lane = options_.reverse_order ? WARP_SIZE - 1 - i : i;
                current_ = warp * WARP_SIZE + lane;
                Thread& thread = threads_[current_];
                const unsigned phase = warps_[warp].phase;
                if (thread.wait == Wait::block || thread.wait == Wait::done) continue;
                set_position();
                const unsigned arrived = warps_[warp].arrived;
                thread.wait = Wait::done;  // unless it pauses again
                thread.fiber.resume();
                progress |= thread.wait != Wait::warp || warps_[warp].phase != phase ||
                            warps_[warp].arrived != arrived;
            }
        }
        for (unsigned lane = 0; lane < WARP_SIZE; ++lane)
            if (threads_[warp * WARP_SIZE + lane].wait == Wait::warp) {
                current_ = warp * WARP_SIZE + lane;
                set_position();
                fail(
                    "divergence in a warp: this lane waits in a warp instruction that others of "
                    "its warp never reach");
            }
    }

    void pause(Wait wait) {
        const std::size_t self = current_;
        threads_[self].wait = wait;
        threads_[self].fiber.pause();
        // The scheduler has set current_ and the position for this thread again.
    }

    void set_position() {
        const auto linear = static_cast<unsigned>(current_);
        const Dim3 dim = position_.block_dim;
        position_.thread = {linear % dim.x, linear / dim.x % dim.y, linear / dim.x / dim.y};
    }

    static std::string where(const Thread& thread) {
        return thread.wait == Wait::done ? "has returned"
                                         : fmt::format("waits at {}:{}", thread.file, thread.line);
    }

    std::vector<std::byte> shared_;
    std::size_t shared_bytes_;
    std::vector<Thread> threads_;
    std::vector<Warp> warps_;
    std::vector<AsyncCopies> copies_;
    bool any_vote_ = false, last_vote_ = false;  // of the barrier ahead, and of the last one
    RaceDetector races_;
    std::optional<BankCounter> banks_;
    Options options_;
    Counters counters_;
    ThreadPosition position_;
    std::size_t current_ = 0;
};

/// The block that this OS thread is running.
thread_local Block* running = nullptr;

Block& current_block() {
    if (running == nullptr) throw std::logic_error("kernel code called outside executor::run()");
    return *running;
}

}  // namespace

Counters& Counters::operator+=(const Counters& other) {
    blocks += other.blocks;
    global_load_bytes += other.global_load_bytes;
    global_store_bytes += other.global_store_bytes;
    barriers += other.barriers;
    shared_instructions += other.shared_instructions;
    shared_wavefronts += other.shared_wavefronts;
    shared_ideal += other.shared_ideal;
    return *this;
}

Counters run(Dim3 grid, Dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel,
             const Options& options) {
    if (block.count() == 0 || block.count() > MAX_THREADS || block.count() % WARP_SIZE != 0)
        throw std::invalid_argument(
            fmt::format("executor: blocks of {} threads; 32, 64 … {} are possible", block.count(),
                        MAX_THREADS));
    const std::uint64_t blocks = grid.count();
    const int offered = options.workers > 0 ? options.workers : omp_get_max_threads();
    const int workers =
        static_cast<int>(std::clamp<std::uint64_t>(blocks, 1, static_cast<std::uint64_t>(offered)));

    Counters total;
    std::exception_ptr error;
    std::atomic<bool> failed = false;
    std::mutex mutex;
    std::atomic<std::uint64_t> next = 0;
#pragma omp parallel num_threads(workers)
    {
        // No exception may leave the region: the first waits outside for the others to end.
        try {
            Block state(grid, block, shared_bytes, options);
            Block* const outer = std::exchange(running, &state);
            try {
                for (std::uint64_t i; !failed && (i = next++) < blocks;) state.run(i, kernel);
            } catch (...) {
                running = outer;
                throw;
            }
            running = outer;
            const std::lock_guard lock(mutex);
            total += state.counters();
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!error) error = std::current_exception();
            failed = true;
        }
    }
    if (error) std::rethrow_exception(error);
    total.blocks = blocks;
    total.threads_per_block = block.count();
    total.shared_bytes_per_block = shared_bytes;
    return total;
}

const ThreadPosition& position() {
    return current_block().position();
}

void block_barrier(const char* file, int line) {
    current_block().barrier(file, line);
}

const std::byte* warp_exchange(int operation, const void* value, std::size_t size) {
    return current_block().exchange(operation, value, size);
}

const std::byte* warp_compute(int operation, const void* value, std::size_t size,
                              void (*compute)(const std::byte*, std::byte*)) {
    return current_block().exchange(operation, value, size, compute);
}

bool block_any(const char* file, int line, bool vote) {
    return current_block().any(file, line, vote);
}

void copy_async(std::size_t offset, const void* data) {
    current_block().copy_async(offset, data);
}
void commit_copies() {
    current_block().commit_copies();
}
void wait_copies(std::size_t pending) {
    current_block().wait_copies(pending);
}

std::byte* shared_base() {
    return current_block().shared_base();
}
std::size_t shared_size() {
    return current_block().shared_size();
}

void note_shared(std::size_t offset, std::size_t size, bool is_write) {
    current_block().note_shared(offset, size, is_write);
}

void note_global(std::size_t size, bool is_write) {
    current_block().note_global(size, is_write);
}

void fail(const std::string& what) {
    const ThreadPosition& at = position();
    throw Fault(fmt::format("{} (block {},{},{}, thread {},{},{})", what, at.block.x, at.block.y,
                            at.block.z, at.thread.x, at.thread.y, at.thread.z));
}

}  // namespace fa::executor
