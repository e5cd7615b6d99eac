#pragma once
/// @file
/// Barriers of Hopper as the executor keeps them: those in shared memory, which count arrivals and
/// bytes in phases (PTX ISA, "mbarrier"), and the named ones of a part of the block.

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/executor/clocks.h"

namespace fa::executor {

/// What went wrong, or nothing.
using Problem = std::string;

/// A barrier in shared memory.
class PhaseBarrier {
  public:
    PhaseBarrier(std::size_t at, std::size_t nth, std::size_t thread, int arrivals,
                 const Clocks& clocks)
        : offset(at),
          number(nth),
          initialiser(thread),
          arrivals_(arrivals),
          missing_(arrivals),
          next_(clocks.nothing()),
          ended_(clocks.nothing()) {}

    /// The parity of the phase that has not ended yet.
    unsigned parity() const { return phase_ & 1; }

    /// One thread arrives and announces bytes.
    Problem arrive(std::size_t thread, std::uint32_t bytes, Clocks& clocks) {
        if (missing_ == 0)
            return fmt::format(
                "more arrivals than the {} that the barrier at byte {} was initialised for: its "
                "phase still waits for {} bytes",
                arrivals_, offset, bytes_);
        clocks.release(thread, next_);
        bytes_ += bytes;
        if (bytes_ > MOST_BYTES)
            return fmt::format("the barrier at byte {} is to wait for {} bytes, {} at most", offset,
                               bytes_, MOST_BYTES);
        --missing_;
        end_phase_if_complete();
        return {};
    }

    /// The bytes of a copy have arrived.
    Problem complete(std::uint32_t bytes, std::size_t clock, Time passed) {
        next_[clock] = std::max(next_[clock], passed);
        bytes_ -= bytes;
        copies_in_phase_ = true;
        if (missing_ == 0 && bytes_ < 0)
            return fmt::format(
                "{} bytes more than announced have arrived at the barrier at byte "
                "{}, and no arrival is missing",
                -bytes_, offset);
        end_phase_if_complete();
        return {};
    }

    /// What those who have waited learn.
    const Knowledge& wait() {
        copies_not_waited_for_ = false;
        return ended_;
    }
    /// Whether copies have arrived in a phase whose end nobody has waited for.
    bool forgotten_copies() const { return copies_in_phase_ || copies_not_waited_for_; }

    /// The present phase, in words.
    std::string state() const {
        return fmt::format("{} of {} arrivals and {} bytes are missing", missing_, arrivals_,
                           bytes_);
    }

    const std::size_t offset;       ///< in shared memory
    const std::size_t number;       ///< among those of the cluster
    const std::size_t initialiser;  ///< thread
    bool published = false;         ///< to copies

  private:
    static constexpr std::int64_t MOST_BYTES = (1 << 20) - 1;

    void end_phase_if_complete() {
        if (missing_ != 0 || bytes_ != 0) return;
        ++phase_;
        missing_ = arrivals_;
        copies_not_waited_for_ |= std::exchange(copies_in_phase_, false);
        for (std::size_t clock = 0; clock < next_.size(); ++clock)
            ended_[clock] = std::max(ended_[clock], next_[clock]);
    }

    int arrivals_, missing_;
    std::int64_t bytes_ = 0;  ///< announced and not arrived; below 0 if they came early
    unsigned phase_ = 0;
    bool copies_in_phase_ = false, copies_not_waited_for_ = false;
    Knowledge next_, ended_;
};

/// A named barrier.
struct NamedBarrier {
    int threads = 0;  ///< of the present generation; 0 before its first arrival
    int arrived = 0;
    std::uint64_t generation = 0;
    Knowledge next, ended;

    /// All lanes of a warp arrive.
    Problem arrive(int id, std::size_t warp, int of_threads, Clocks& clocks) {
        if (next.empty()) next = ended = clocks.nothing();
        if (threads == 0) threads = of_threads;
        if (threads != of_threads)
            return fmt::format("named barrier {} of {} threads, where others came to one of {}", id,
                               of_threads, threads);
        clocks.release(warp * 32, next);  // the lanes have met
        arrived += 32;
        if (arrived == threads) {
            ended = next;
            threads = arrived = 0;
            ++generation;
        }
        return {};
    }
};

/// All barriers of the blocks of a cluster.
class Barriers {
  public:
    static constexpr int NAMED = 16;  ///< of a block; 0 is the block's own

    explicit Barriers(std::size_t blocks) : named_(blocks * NAMED) {}

    /// The barrier at an offset, or nullptr.
    PhaseBarrier* at(std::size_t offset) {
        const auto found = phases_.find(offset);
        return found == phases_.end() ? nullptr : &found->second;
    }
    /// Whether any barrier lies in these bytes; and where.
    const PhaseBarrier* within(std::size_t offset, std::size_t size) const {
        const auto next = phases_.lower_bound(offset < 8 ? 0 : offset - 7);
        return next != phases_.end() && next->first < offset + size ? &next->second : nullptr;
    }
    /// Makes a barrier; there is none at the offset.
    PhaseBarrier& init(std::size_t offset, std::size_t thread, int arrivals, const Clocks& clocks) {
        return phases_.try_emplace(offset, offset, phases_.size(), thread, arrivals, clocks)
            .first->second;
    }
    /// `thread` makes the barriers that it initialised visible to copies.
    void publish(std::size_t thread) {
        for (auto& [offset, barrier] : phases_)
            if (barrier.initialiser == thread) barrier.published = true;
    }
    /// Named barrier `id` of a block, 1 … NAMED − 1.
    NamedBarrier& named(std::size_t block, int id) {
        return named_[block * NAMED + static_cast<std::size_t>(id)];
    }
    /// The same.
    const NamedBarrier& named(std::size_t block, int id) const {
        return named_[block * NAMED + static_cast<std::size_t>(id)];
    }
    const std::map<std::size_t, PhaseBarrier>& phases() const { return phases_; }

  private:
    std::map<std::size_t, PhaseBarrier> phases_;
    std::vector<NamedBarrier> named_;
};

}  // namespace fa::executor
