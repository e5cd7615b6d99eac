#pragma once
/// @file
/// Which accesses are ordered before what a thread does now: vector clocks.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fa::executor {

/// A time on one of the clocks.
using Time = std::uint32_t;
/// For each clock, the first time that is not known to have passed.
using Knowledge = std::vector<Time>;

/// Clocks of what happens in a block or a cluster of them: of each warp's own accesses, of its
/// products, of its stores by boxes, and of the copies that arrive at one barrier. An access bears
/// the time of its clock. It is ordered before what a thread does now if that thread knows the time
/// to have passed: by a barrier of its warp, block or cluster, or by messages from thread to thread
/// through the barriers of Hopper (an arrival releases what the thread knows, a wait acquires it).
///
/// A message from one lane covers what all lanes of its warp have done so far, for the clock is
/// theirs together. A lane that has not got there yet is not covered; so where a lane releases
/// for others without a barrier of the warp, that is found in the order in which it runs first.
///
/// Kernels without such messages need no knowledge: within one warp the time itself says it, and
/// beyond a warp only a barrier of the block orders, which RaceDetector keeps count of.
class Clocks {
  public:
    static constexpr std::size_t COPY_CLOCKS = 64;

    Clocks(std::size_t threads, std::size_t warps)
        : threads_(threads), warps_(warps), time_(3 * warps + COPY_CLOCKS, 1) {}

    /// The clock of a warp's products; that of its own accesses is its number.
    std::size_t products_of(std::size_t warp) const { return warps_ + warp; }
    /// The clock of a warp's stores of boxes.
    std::size_t stores_of(std::size_t warp) const { return 2 * warps_ + warp; }
    /// The clock of the copies that arrive at a barrier.
    std::size_t copies_to(std::size_t barrier) const {
        return 3 * warps_ + barrier % COPY_CLOCKS;  // barriers that share one hide a race at most
    }
    std::size_t warps() const { return warps_; }

    /// From now on there are messages.
    void start_messages() {
        if (messages()) return;
        messages_ = true;
        known_.assign(threads_ * time_.size(), 0);
        for (std::size_t thread = 0; thread < threads_; ++thread)
            of(thread)[thread / 32] = time_[thread / 32];
    }
    bool messages() const { return messages_; }

    /// The present time of a clock.
    Time now(std::size_t clock) const { return time_[clock]; }
    /// Ends the present time of a clock. @return the next
    Time tick(std::size_t clock) { return ++time_[clock]; }

    /// What a thread knows, for each clock.
    const Time* known(std::size_t thread) const { return &known_[thread * time_.size()]; }
    /// Tells a thread that the times before `passed` have passed.
    void learn(std::size_t thread, std::size_t clock, Time passed) {
        Time& entry = of(thread)[clock];
        entry = std::max(entry, passed);
    }
    Knowledge nothing() const { return Knowledge(time_.size(), 0); }

    /// Leaves what `thread` knows, and what it did, in a message.
    void release(std::size_t thread, Knowledge& message) {
        join(message.data(), known(thread));
        message[thread / 32] = std::max(message[thread / 32], tick(thread / 32));
    }
    /// Learns what a message says.
    void acquire(std::size_t thread, const Knowledge& message) { join(of(thread), message.data()); }

    /// What the 32 lanes know, and all that they did, all of them know.
    void warp_barrier(std::size_t warp) {
        const Time now = tick(warp);
        if (!messages()) return;
        Time* const first = of(32 * warp);
        for (std::size_t lane = 1; lane < 32; ++lane) join(first, known(32 * warp + lane));
        first[warp] = now;
        for (std::size_t lane = 1; lane < 32; ++lane)
            std::copy_n(first, time_.size(), of(32 * warp + lane));
    }
    /// What these threads know, and all that all of them did, all of them know.
    void barrier(std::size_t first_thread, std::size_t threads) {
        if (!messages()) return;
        Time* const first = of(first_thread);
        const std::size_t end = first_thread + threads;
        for (std::size_t thread = first_thread + 1; thread < end; ++thread)
            join(first, known(thread));
        for (std::size_t warp = first_thread / 32; warp < end / 32; ++warp)
            first[warp] = tick(warp);
        for (std::size_t thread = first_thread + 1; thread < end; ++thread)
            std::copy_n(first, time_.size(), of(thread));
    }
    /// What is known to all 32 lanes of a warp.
    Knowledge common(std::size_t warp) const {
        Knowledge result(known(32 * warp), known(32 * warp) + time_.size());
        for (std::size_t lane = 1; lane < 32; ++lane)
            for (std::size_t clock = 0; clock < result.size(); ++clock)
                result[clock] = std::min(result[clock], known(32 * warp + lane)[clock]);
        result[warp] = time_[warp] + 1;  // a warp's instruction comes after what its lanes did
        return result;
    }

    /// All that was, everyone knows: blocks follow one another.
    void start_block() {
        if (!messages()) return;
        for (Time& time : time_) ++time;
        for (std::size_t thread = 0; thread < threads_; ++thread)
            std::copy(time_.begin(), time_.end(), of(thread));
    }

  private:
    Time* of(std::size_t thread) { return &known_[thread * time_.size()]; }
    void join(Time* to, const Time* from) const {
        for (std::size_t clock = 0; clock < time_.size(); ++clock)
            to[clock] = std::max(to[clock], from[clock]);
    }

    std::size_t threads_, warps_;
    bool messages_ = false;
    std::vector<Time> time_;
    std::vector<Time> known_;  ///< of each thread, of each clock
};

}  // namespace fa::executor
