#pragma once
/// @file
/// Finds races in shared memory: for every word, who touched it last, and between which barriers.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fa::executor {

/// Two accesses to a word by different threads, at least one a write, race unless a block barrier,
/// or for threads of one warp a warp barrier, lies between. Remembers the last write and the last
/// read of a word (of several readers the latest, or that there were several): enough to find every
/// race with the latest access, which is what a kernel with a missing barrier shows in one run or
/// another.
class RaceDetector {
  public:
    explicit RaceDetector(std::size_t bytes) : words_((bytes + 3) / 4) {}

    void clear() {
        words_.assign(words_.size(), Word{});
        block_epoch_ = 1;
        warp_epoch_.assign(warp_epoch_.size(), 0);
    }
    void block_barrier() { ++block_epoch_; }
    void warp_barrier(std::size_t warp) { ++epoch_of(warp); }

    /// @return false if the access races with an earlier one
    bool access(std::size_t thread, std::size_t offset, std::size_t size, bool is_write) {
        const auto self = static_cast<std::uint32_t>(thread);
        const Stamp now{self, block_epoch_, epoch_of(thread / 32)};
        bool clean = true;
        for (std::size_t w = offset / 4; w < (offset + size + 3) / 4; ++w) {
            Word& word = words_[w];
            clean &= ordered(word.write, now);
            if (is_write) {
                clean &= ordered(word.read, now) && ordered(word.other_read, now);
                word.write = now;
            } else if (word.read.thread != self) {
                word.other_read = word.read;
                word.read = now;
            } else {
                word.read = now;
            }
        }
        return clean;
    }

  private:
    struct Stamp {
        std::uint32_t thread = 0, block_epoch = 0, warp_epoch = 0;  // block epoch 0: never
    };
    struct Word {
        Stamp write, read, other_read;
    };

    static bool ordered(const Stamp& before, const Stamp& now) {
        if (before.block_epoch != now.block_epoch) return true;
        if (before.thread == now.thread) return true;
        return before.thread / 32 == now.thread / 32 && before.warp_epoch != now.warp_epoch;
    }
    std::uint32_t& epoch_of(std::size_t warp) {
        if (warp >= warp_epoch_.size()) warp_epoch_.resize(warp + 1, 0);
        return warp_epoch_[warp];
    }

    std::vector<Word> words_;
    std::uint32_t block_epoch_ = 1;
    std::vector<std::uint32_t> warp_epoch_;
};

}  // namespace fa::executor
