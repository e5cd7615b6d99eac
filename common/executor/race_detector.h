#pragma once
/// @file
/// Finds races in shared memory: for every word, who wrote it last, who read it since, and between
/// which barriers.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fa::executor {

/// Two accesses to a 4-byte word by different threads, at least one of them a write, race unless a
/// block barrier lies between them, or, for threads of one warp, a warp barrier.
///
/// Exact for the order in which the threads ran: an access is reported if and only if it races with
/// an earlier one. The last write is enough to know, since all earlier ones are ordered before it
/// or were reported. Of the readers since the last block barrier, two warps are enough: a write
/// comes from another warp than one of the two. Of a warp's readers since its last warp barrier one
/// lane is enough, and whether there were others.
class RaceDetector {
  public:
    RaceDetector(std::size_t bytes, std::size_t warps)
        : words_((bytes + 3) / 4), warp_epoch_(warps, 0) {}

    /// All accesses up to now, of all threads, are ordered before all that follow.
    void block_barrier() { ++block_epoch_; }
    /// The same for the threads of one warp.
    void warp_barrier(std::size_t warp) { ++warp_epoch_[warp]; }

    /// Notes an access. @return false if it races with an earlier one
    bool access(std::size_t thread, std::size_t offset, std::size_t size, bool is_write) {
        const Toucher now{warp_epoch_[thread / 32], static_cast<std::uint16_t>(thread)};
        bool clean = true;
        for (std::size_t w = offset / 4; w < (offset + size + 3) / 4; ++w) {
            Word& word = words_[w];
            if (word.write_epoch == block_epoch_) clean &= ordered(word.writer, now);
            if (is_write) {
                if (word.read_epoch == block_epoch_)
                    for (const Toucher& reader : word.reader)
                        clean &= reader.thread == NOBODY || ordered(reader, now);
                word.write_epoch = block_epoch_;
                word.writer = now;
            } else if (word.read_epoch != block_epoch_) {
                word.read_epoch = block_epoch_;
                word.reader[0] = now;
                word.reader[1].thread = NOBODY;
            } else {
                note_reader(word.reader[word.reader[0].warp() == now.warp() ? 0 : 1], now);
            }
        }
        return clean;
    }

  private:
    static constexpr std::uint16_t NOBODY = 0xffff;

    struct Toucher {
        std::uint32_t warp_epoch = 0;
        std::uint16_t thread = NOBODY;
        bool several = false;  // other lanes of the warp did the same, between the same barriers
        int warp() const { return thread / 32; }
    };
    /// What happened since the block barriers numbered write_epoch and read_epoch.
    struct Word {
        std::uint32_t write_epoch = 0, read_epoch = 0;
        Toucher writer;
        Toucher reader[2];  // of different warps
    };

    /// For two accesses between the same block barriers.
    static bool ordered(const Toucher& before, const Toucher& now) {
        return before.warp() == now.warp() && (before.warp_epoch != now.warp_epoch ||
                                               (before.thread == now.thread && !before.several));
    }

    static void note_reader(Toucher& reader, const Toucher& now) {
        const bool beside = reader.warp() == now.warp() && reader.warp_epoch == now.warp_epoch;
        const bool several = beside && (reader.several || reader.thread != now.thread);
        reader = now;
        reader.several = several;
    }

    std::vector<Word> words_;
    std::uint32_t block_epoch_ = 1;
    std::vector<std::uint32_t> warp_epoch_;
};

}  // namespace fa::executor
