#include "common/executor/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fa::executor {

Block::Block(Dim3 grid, Dim3 block, std::size_t shared_bytes, const Options& options)
    : shared_(shared_bytes + 16),
      shared_bytes_(shared_bytes),
      fibers_(block.count()),
      threads_(block.count()),
      warps_(block.count() / WARP_SIZE),
      copies_(block.count()),
      clocks_(block.count(), warps_.size()),
      races_(shared_bytes, clocks_),
      options_(options) {
    position_.block_dim = block;
    position_.grid_dim = grid;
    if (options.count_banks) banks_.emplace(threads_.size());
}

void Block::run(std::uint64_t linear_block, const std::function<void()>& kernel) {
    const Dim3 grid = position_.grid_dim;
    position_.block = {static_cast<unsigned>(linear_block % grid.x),
                       static_cast<unsigned>(linear_block / grid.x % grid.y),
                       static_cast<unsigned>(linear_block / grid.x / grid.y)};
    std::memset(shared_.data(), 0xff, shared_.size());  // a NaN in every type
    races_.block_barrier();                             // blocks follow one another
    first_epoch_ = races_.epoch();
    for (Warp& warp : warps_) warp.operation = 0, warp.arrived = 0, warp.phase = 0;
    for (AsyncCopies& copies : copies_) copies = {};
    any_vote_ = false;
    random_.seed(static_cast<std::uint32_t>(options_.shuffle * 1000003 + linear_block + 1));
    asleep_.assign(warps_.size(), 0);
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
    any_vote_ |= vote;
    barrier(file, line);
    return last_vote_;
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
        note_race(offset, AsyncCopies::BYTES, /*is_write=*/true);
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
            return hopper_->barriers.named(thread.named).generation != thread.generation;
        case Wait::sleep: return turns_ >= thread.wakes_at;
        case Wait::block:
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

/// No thread can go on. Lets a copy arrive, wakes who sleeps, or opens the block's barrier. @return
/// true if all are done
bool Block::end_round() {
    if (hopper_ && !hopper_->loads.empty()) {
        const auto waits_for_phase = [](const Thread& t) { return t.wait == Wait::phase; };
        if (std::any_of(threads_.begin(), threads_.end(), waits_for_phase)) {
            deliver();
            return false;
        }
    }
    if (wake_all()) return false;
    for (const Thread& thread : threads_)
        if (thread.wait == Wait::phase || thread.wait == Wait::named) deadlock();
    for (std::size_t warp = 0; warp < warps_.size(); ++warp) check_lanes(warp);

    const Thread& first = threads_.front();
    for (std::size_t i = 0; i < threads_.size(); ++i) {
        const Thread& thread = threads_[i];
        if (thread.wait == first.wait &&
            (first.wait == Wait::done ||
             (thread.line == first.line && std::strcmp(thread.file, first.file) == 0)))
            continue;
        set_current(i);
        fail(fmt::format("divergence at a barrier: thread 0 {}, this one {}", where(first),
                         where(thread)));
    }
    if (banks_)
        for (std::size_t warp = 0; warp < warps_.size(); ++warp) banks_->end_of_phase(warp);
    if (first.wait == Wait::done) return true;
    open_block_barrier();
    return false;
}

void Block::open_block_barrier() {
    ++counters_.barriers;
    races_.block_barrier();
    clocks_.block_barrier();
    for (std::size_t warp = 0; warp < warps_.size(); ++warp) forget_common_knowledge(warp);
    last_vote_ = std::exchange(any_vote_, false);
    for (Thread& thread : threads_) thread.wait = Wait::none;
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
    const auto linear = static_cast<unsigned>(thread);
    const Dim3 dim = position_.block_dim;
    position_.thread = {linear % dim.x, linear / dim.x % dim.y, linear / dim.x / dim.y};
}

std::string Block::where(const Thread& thread) const {
    switch (thread.wait) {
        case Wait::done: return "has returned";
        case Wait::block: return fmt::format("waits at {}:{}", thread.file, thread.line);
        case Wait::warp: return "waits in a warp instruction for other lanes";
        case Wait::phase:
            return fmt::format(
                "waits at the barrier at byte {} of shared memory for the end of a phase of parity "
                "{}: the present phase has parity {}, {}",
                thread.barrier->offset, thread.parity, thread.barrier->parity(),
                thread.barrier->state());
        case Wait::named: {
            const NamedBarrier& barrier = hopper_->barriers.named(thread.named);
            return fmt::format("waits at named barrier {}, where {} of {} threads have arrived",
                               thread.named, barrier.arrived, barrier.threads);
        }
        case Wait::sleep: return "sleeps";
        case Wait::none: break;
    }
    return "runs";
}

}  // namespace fa::executor
