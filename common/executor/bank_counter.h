#pragma once
/// @file
/// Counts shared-memory bank conflicts: 32 banks of 4 bytes, one word per bank and clock, all lanes
/// that want the same word served at once.

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "common/executor/executor.h"

namespace fa::executor {

/// Collects each lane's accesses between two points where its warp meets (a block barrier, a warp
/// barrier, a shuffle), then looks at the n-th access of the 32 lanes as one instruction. That is
/// what they are as long as the lanes of a warp make the same accesses in the same order, or some
/// of them stop early, as the kernels of this course do.
class BankCounter {
  public:
    explicit BankCounter(std::size_t threads) : accesses_(threads) {}

    /// Notes that a thread reads or writes `size` bytes at an offset of shared memory.
    void access(std::size_t thread, std::size_t offset, std::size_t size) {
        accesses_[thread].push_back(
            {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)});
    }

    /// The lanes of a warp have met: what they did up to now is complete.
    void end_of_phase(std::size_t warp) {
        const auto lanes = accesses_.begin() + static_cast<std::ptrdiff_t>(warp * WARP_SIZE);
        std::size_t longest = 0;
        for (unsigned lane = 0; lane < WARP_SIZE; ++lane)
            longest = std::max(longest, lanes[lane].size());
        for (std::size_t n = 0; n < longest; ++n) instruction(warp, n);
        for (unsigned lane = 0; lane < WARP_SIZE; ++lane) lanes[lane].clear();
    }

    /// Adds what was counted.
    void add_to(Counters& counters) const {
        counters.shared_instructions += instructions_;
        counters.shared_wavefronts += wavefronts_;
        counters.shared_ideal += ideal_;
    }

  private:
    struct Access {
        std::uint32_t offset, size;
    };

    /// The hardware serves 128 bytes a clock: 8-byte accesses in two half warps, 16-byte accesses
    /// in four quarter warps. If all lanes go in pairs that want the same, two of these are served
    /// as one. Measured on an H200, pattern by pattern; scripts/gpu_counters.py compares whole
    /// kernels.
    void instruction(std::size_t warp, std::size_t n) {
        const std::size_t first = warp * WARP_SIZE;
        std::uint32_t size = 4;
        for (unsigned lane = 0; lane < WARP_SIZE; ++lane)
            if (const auto& list = accesses_[first + lane]; n < list.size())
                size = std::max(size, list[n].size);
        ++instructions_;
        unsigned lanes = WARP_SIZE / (size / 4);  // that are served at once
        if (size > 4 && in_pairs(first, n)) lanes *= 2;
        for (unsigned lane = 0; lane < WARP_SIZE; lane += lanes) group(first + lane, lanes, n);
    }

    /// Whether each lane makes the same access as its neighbour, or each the same as the lane after
    /// its neighbour. A lane without an access agrees with any.
    bool in_pairs(std::size_t first, std::size_t n) const {
        const auto all_agree_with = [&](std::size_t distance) {
            for (std::size_t i = 0; i < WARP_SIZE; ++i) {
                const auto &a = accesses_[first + i], &b = accesses_[first + (i ^ distance)];
                if (n < a.size() && n < b.size() && a[n].offset != b[n].offset) return false;
            }
            return true;
        };
        return all_agree_with(1) || all_agree_with(2);
    }

    /// Lanes that are served together: the clocks are the most different words that one bank is
    /// asked for.
    void group(std::size_t first, unsigned lanes, std::size_t n) {
        std::array<std::uint32_t, 2 * WARP_SIZE> words;
        std::size_t count = 0;
        for (unsigned i = 0; i < lanes; ++i) {
            const auto& list = accesses_[first + i];
            if (n >= list.size()) continue;
            for (std::uint32_t byte = 0; byte < std::max(list[n].size, 4u); byte += 4)
                words[count++] = (list[n].offset + byte) / 4;
        }
        if (count == 0) return;
        const auto last = words.begin() + static_cast<std::ptrdiff_t>(count);
        std::sort(words.begin(), last);
        std::array<std::uint32_t, 32> per_bank{};
        std::for_each(words.begin(), std::unique(words.begin(), last),
                      [&](std::uint32_t word) { ++per_bank[word % 32]; });
        wavefronts_ += *std::max_element(per_bank.begin(), per_bank.end());
        ++ideal_;
    }

    std::vector<std::vector<Access>> accesses_;
    std::uint64_t instructions_ = 0, wavefronts_ = 0, ideal_ = 0;
};

}  // namespace fa::executor
