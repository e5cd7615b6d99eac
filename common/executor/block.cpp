#include "common/executor/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fa::executor {

Block::Block(Dim3 grid, Dim3 block, std::size_t shared_bytes, const Options& options)
    : block_threads_(block.count()),
      shared_bytes_(shared_bytes),
      block_bytes_((shared_bytes + BOX_ALIGNMENT - 1) / BOX_ALIGNMENT * BOX_ALIGNMENT),
      shared_(options.cluster * block_bytes_ + 16),
      fibers_(options.cluster * block_threads_),
      threads_(fibers_.size()),
      warps_(threads_.size() / WARP_SIZE),
      copies_(threads_.size()),
      votes_(options.cluster),
      reached_(options.cluster),
      clocks_(threads_.size(), warps_.size()),
      races_(options.cluster * block_bytes_, clocks_),
      options_(options) {
    position_.block_dim = block;
    position_.grid_dim = grid;
    if (options.count_banks) banks_.emplace(threads_.size());
}

void Block::run(std::uint64_t linear_cluster, const std::function<void()>& kernel) {
    const Dim3 grid = position_.grid_dim;
    const std::uint64_t linear_block = linear_cluster * blocks();
    first_block_ = {static_cast<unsigned>(linear_block % grid.x),
                    static_cast<unsigned>(linear_block / grid.x % grid.y),
                    static_cast<unsigned>(linear_block / grid.x / grid.y)};
    std::memset(shared_.data(), 0xff, shared_.size());  // a NaN in every type
    races_.block_barrier();                             // blocks follow one another
    first_epoch_ = races_.epoch();
    for (Warp& warp : warps_) warp.operation = 0, warp.arrived = 0, warp.phase = 0;
    for (AsyncCopies& copies : copies_) copies = {};
    votes_.assign(blocks(), {});
    reached_.assign(blocks(), false);
    random_.seed(static_cast<std::uint32_t>(options_.shuffle * 1000003 + linear_cluster + 1));
    asleep_.assign(warps_.size(), 0);
    if (blocks() > 1) hopper();  // between blocks there are only messages
    if (hopper_) start_hopper();
    for (Thread& thread : threads_) thread.wait = Wait::none;
    for (Fiber& fiber : fibers_) fiber.start(kernel);
    do warps_in_turn();
    while (!end_round());
    if (hopper_) end_hopper();
}

Counters Block::counters() const {
    Counters result = counters_;
    if (banks_) banks_->add_to(result);
    return result;
}

// ---- What the running thread calls

void Block::barrier(const char* file, int line) {
    Thread& thread = threads_[current_];
    thread.file = file;
    thread.line = line;
    pause(Wait::block);
}

bool Block::any(const char* file, int line, bool vote) {
    votes_[own_block()].ahead |= vote;
    barrier(file, line);
    return votes_[own_block()].last;
}

/// @return the warp's slots of operands, or of results if there is something to compute
const std::byte* Block::exchange(int operation, const void* value, std::size_t size,
                                 Compute compute) {
    const std::size_t w = current_ / WARP_SIZE;
    const unsigned set = meet(operation, value, size, [&](Warp& warp, unsigned phase) {
        // A shuffle exchanges registers; it does not order accesses to memory.
        if (operation == WARP_BARRIER) {
            clocks_.warp_barrier(w);
            forget_common_knowledge(w);
        }
        if (compute != nullptr) compute(&warp.slots[phase][0][0], &warp.results[phase][0][0]);
    });
    return compute != nullptr ? &warps_[w].results[set][current_ % WARP_SIZE][0]
                              : &warps_[w].slots[set][0][0];
}

void Block::copy_async(std::size_t offset, const void* data) {
    note_shared(offset, AsyncCopies::BYTES, /*is_write=*/true);
    if (options_.copies_arrive_at_once) {
        std::memcpy(shared_base() + offset, data, AsyncCopies::BYTES);
        return;
    }
    std::memset(shared_base() + offset, 0xff, AsyncCopies::BYTES);
    copies_[current_].add(offset, data);
}

void Block::wait_copies(std::size_t pending) {
    copies_[current_].wait(pending, [&](std::size_t offset, const std::byte* data) {
        // The hardware may have written at any moment since the copy was issued.
        note_race(at(offset), AsyncCopies::BYTES, /*is_write=*/true);
        std::memcpy(shared_base() + offset, data, AsyncCopies::BYTES);
    });
}

void Block::sleep(std::int64_t turns) {
    threads_[current_].wakes_at = turns_ + turns;
    pause(Wait::sleep);
}

// ---- Whose turn it is

/// Lets every warp run as far as it can.
void Block::warps_in_turn() {
    if (options_.shuffle != 0) return warps_at_random();
    const std::size_t warps = warps_.size();
    // Without barriers of Hopper one visit is enough: nobody opens another warp's way.
    for (bool progress = true; progress; progress &= hopper_.has_value()) {
        progress = false;
        for (std::size_t i = 0; i < warps; ++i)
            progress |= run_warp(options_.reverse_order ? warps - 1 - i : i, /*once=*/false);
    }
}

/// The same in an order that only the hardware could have thought of. Some warps sit out while
/// others run, for a short time or a long one: coming late is what finds a phase that can be
/// missed.
void Block::warps_at_random() {
    const std::size_t warps = warps_.size();
    for (bool progress = true, all_awake = false; progress || !all_awake;) {
        if (!progress) std::fill(asleep_.begin(), asleep_.end(), 0u);
        all_awake = !progress;
        progress = false;
        for (std::size_t i = 0; i < warps; ++i) {
            const std::size_t warp = all_awake ? i : random_() % warps;
            if (asleep_[warp] != 0) {
                --asleep_[warp];
                continue;
            }
            progress |= run_warp(warp, /*once=*/!all_awake && random_() % 2 == 0);
            if (random_() % 16 == 0) asleep_[warp] = 1u << random_() % 8;
            if (hopper_ && !hopper_->loads.empty() && random_() % 8 == 0) {
                deliver();
                progress = true;
            }
        }
    }
}

bool Block::runnable(const Thread& thread) const {
    switch (thread.wait) {
        case Wait::none: return true;
        case Wait::warp:
            return warps_[static_cast<std::size_t>(&thread - threads_.data()) / WARP_SIZE].phase !=
                   thread.warp_phase;
        case Wait::phase: return thread.barrier->parity() != thread.parity;
        case Wait::named:
            return hopper_->barriers.named(block_of(thread), thread.named).generation !=
                   thread.generation;
        case Wait::sleep: return turns_ >= thread.wakes_at;
        case Wait::block:
        case Wait::cluster:
        case Wait::done: break;
    }
    return false;
}

/// Runs the 32 lanes until each waits for something that others have to do, or through them once.
/// @return whether any ran
bool Block::run_warp(std::size_t warp, bool once) {
    bool any = false;
    for (bool progress = true; progress;) {
        progress = false;
        for (unsigned i = 0; i < WARP_SIZE; ++i) {
            const std::size_t lane = options_.reverse_order ? WARP_SIZE - 1 - i : i;
            Thread& thread = threads_[warp * WARP_SIZE + lane];
            if (!runnable(thread)) continue;
            // Lanes of a warp need not stay together.
            if (once && options_.shuffle != 0 && random_() % 8 == 0) continue;
            set_current(warp * WARP_SIZE + lane);
            thread.wait = Wait::done;  // unless it pauses again
            ++turns_;
            fibers_[current_].resume();
            progress = true;
        }
        any |= progress;
        if (once) break;
    }
    return any;
}

/// Finds a lane that waits for others of its warp, which will not come.
void Block::check_lanes(std::size_t warp) {
    for (unsigned lane = 0; lane < WARP_SIZE; ++lane)
        if (threads_[warp * WARP_SIZE + lane].wait == Wait::warp) {
            set_current(warp * WARP_SIZE + lane);
            fail(
                "divergence in a warp: this lane waits in a warp instruction that others of "
                "its warp never reach");
        }
}

/// Ends the sleep of all threads that sleep. @return whether there are any
bool Block::wake_all() {
    bool any = false;
    for (Thread& thread : threads_)
        if (thread.wait == Wait::sleep) thread.wait = Wait::none, any = true;
    return any;
}

/// No thread can go on. Lets a copy arrive, wakes who sleeps, or opens a barrier of a block or of
/// the cluster. @return true if all are done
bool Block::end_round() {
    const auto waits = [&](Wait wait) {
        return [wait](const Thread& thread) { return thread.wait == wait; };
    };
    if (hopper_ && !hopper_->loads.empty() &&
        std::any_of(threads_.begin(), threads_.end(), waits(Wait::phase))) {
        deliver();
        return false;
    }
    if (wake_all()) return false;
    bool opened = false;
    for (std::size_t block = 0; block < blocks(); ++block) opened |= open_block_barrier(block);
    if (opened) return false;
    if (std::all_of(threads_.begin(), threads_.end(), waits(Wait::cluster))) {
        open_cluster_barrier();
        return false;
    }
    if (std::all_of(threads_.begin(), threads_.end(), waits(Wait::done))) {
        end_of_banks(0, warps_.size());
        return true;
    }
    for (const Thread& thread : threads_)
        if (thread.wait == Wait::phase || thread.wait == Wait::named) deadlock();
    for (std::size_t warp = 0; warp < warps_.size(); ++warp) check_lanes(warp);
    for (std::size_t block = 0; block < blocks(); ++block) check_block(block);
    deadlock();  // one block has ended, another waits for it
}

/// Whether two threads of a block have come to the same.
bool Block::together(const Thread& a, const Thread& b) const {
    return a.wait == b.wait &&
           (a.wait != Wait::block || (a.line == b.line && std::strcmp(a.file, b.file) == 0));
}

/// Finds a thread of a block that is not where its first one is.
void Block::check_block(std::size_t block) {
    const std::size_t first = block * block_threads_;
    for (std::size_t i = first; i < first + block_threads_; ++i) {
        if (together(threads_[first], threads_[i])) continue;
        set_current(i);
        fail(fmt::format("divergence at a barrier: thread 0 {}, this one {}",
                         where(threads_[first]), where(threads_[i])));
    }
}

/// Opens a block's barrier if all its threads wait there. @return whether they did
bool Block::open_block_barrier(std::size_t block) {
    const auto first = threads_.begin() + static_cast<std::ptrdiff_t>(block * block_threads_);
    const auto end = first + static_cast<std::ptrdiff_t>(block_threads_);
    if (first->wait != Wait::block ||
        !std::all_of(first, end, [&](const Thread& t) { return together(*first, t); }))
        return false;
    ++counters_.barriers;
    if (blocks() == 1) races_.block_barrier();  // else it orders the threads of one block only
    open_barrier(block * block_threads_, block_threads_);
    votes_[block] = {.ahead = false, .last = votes_[block].ahead};
    return true;
}

/// Opens the cluster's.
void Block::open_cluster_barrier() {
    counters_.barriers += blocks();
    races_.block_barrier();
    reached_.assign(blocks(), false);
    open_barrier(0, threads_.size());
}

/// Lets threads that wait for each other go on.
void Block::open_barrier(std::size_t first, std::size_t threads) {
    clocks_.barrier(first, threads);
    const std::size_t first_warp = first / WARP_SIZE, warps = threads / WARP_SIZE;
    for (std::size_t warp = first_warp; warp < first_warp + warps; ++warp)
        forget_common_knowledge(warp);
    end_of_banks(first_warp, warps);
    for (std::size_t i = first; i < first + threads; ++i) threads_[i].wait = Wait::none;
}

/// No access of these warps before this can be one instruction with one after it.
void Block::end_of_banks(std::size_t first_warp, std::size_t warps) {
    if (!banks_) return;
    for (std::size_t warp = first_warp; warp < first_warp + warps; ++warp)
        banks_->end_of_phase(warp);
}

void Block::deadlock() {
    // Each kind of waiting once, with the first thread that does: one of them is the culprit.
    std::string waits;
    std::vector<std::string> seen;
    for (std::size_t i = 0; i < threads_.size(); ++i) {
        if (threads_[i].wait == Wait::done) continue;
        std::string wait = where(threads_[i]);
        if (std::find(seen.begin(), seen.end(), wait) != seen.end()) continue;
        waits += seen.empty() ? "this one " + wait : fmt::format("; thread {} {}", i, wait);
        if (seen.empty()) set_current(i);
        seen.push_back(std::move(wait));
        if (seen.size() == 8) break;
    }
    fail("deadlock: no thread can go on, " + waits);
}

void Block::pause(Wait wait) {
    const std::size_t self = current_;
    threads_[self].wait = wait;
    fibers_[self].pause();
    // The scheduler has set current_ and the position for this thread again.
}

void Block::maybe_yield() {
    if (options_.shuffle != 0 && random_() % 4 == 0) pause(Wait::none);
}

void Block::set_current(std::size_t thread) {
    current_ = thread;
    const Dim3 dim = position_.block_dim;
    const auto block = static_cast<unsigned>(thread / block_threads_);
    const unsigned linear = static_cast<unsigned>(thread % block_threads_);
    position_.thread = {linear % dim.x, linear / dim.x % dim.y, linear / dim.x / dim.y};
    position_.block = {first_block_.x + block, first_block_.y, first_block_.z};
    position_.block_in_cluster = block;
}

std::string Block::where(const Thread& thread) const {
    switch (thread.wait) {
        case Wait::done: return "has returned";
        case Wait::block: return fmt::format("waits at {}:{}", thread.file, thread.line);
        case Wait::cluster: return "waits at the barrier of the cluster";
        case Wait::warp: return "waits in a warp instruction for other lanes";
        case Wait::phase:
            return fmt::format(
                "waits at the barrier at byte {} of shared memory for the end of a phase of parity "
                "{}: the present phase has parity {}, {}",
                thread.barrier->offset, thread.parity, thread.barrier->parity(),
                thread.barrier->state());
        case Wait::named: {
            const NamedBarrier& barrier = hopper_->barriers.named(block_of(thread), thread.named);
            return fmt::format("waits at named barrier {}, where {} of {} threads have arrived",
                               thread.named, barrier.arrived, barrier.threads);
        }
        case Wait::sleep: return "sleeps";
        case Wait::none: break;
    }
    return "runs";
}

}  // namespace fa::executor
