#pragma once
/// @file
/// Finds races in shared memory: for every word, who wrote it last, who read it since, and between
/// which barriers.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/executor/clocks.h"

namespace fa::executor {

/// Two accesses to a 4-byte word by different threads, at least one of them a write, race unless a
/// block barrier lies between them, or, for threads of one warp, a warp barrier, or for any two a
/// message (Clocks).
///
/// Without messages it is exact for the order in which the threads ran: an access is reported if
/// and only if it races with an earlier one. The last write is enough to know, since all earlier
/// ones are ordered before it or were reported. Of the readers since the last block barrier, two
/// warps are enough: a write comes from another warp than one of the two. Of a warp's readers since
/// its last warp barrier one lane is enough, and whether there were others.
///
/// With messages every report is still a race, but where more than two warps read a word with no
/// order among them, only two are remembered.
class RaceDetector {
  public:
    RaceDetector(std::size_t bytes, const Clocks& clocks)
        : clocks_(clocks), words_((bytes + 3) / 4) {}

    /// All accesses up to now, of all threads, are ordered before all that follow.
    void block_barrier() { ++block_epoch_; }

    /// Notes an access. @return false if it races with an earlier one
    bool access(std::size_t thread, std::size_t offset, std::size_t size, bool is_write) {
        return clocks_.messages() ? note<true>(thread, offset, size, is_write)
                                  : note<false>(thread, offset, size, is_write);
    }

    /// Whether an access by something that knows `known` would race; notes nothing.
    /// @param known for each clock; not looked at without messages
    bool would_race(const Time* known, std::size_t offset, std::size_t size, bool is_write) const {
        const auto unknown = [&](const Toucher& before) {
            return before.thread != NOBODY && before.time >= known[before.warp()];
        };
        const std::size_t end = std::min((offset + size + 3) / 4, words_.size());
        for (std::size_t w = offset / 4; w < end; ++w) {
            const Word& word = words_[w];
            if (word.write_epoch == block_epoch_ && unknown(word.writer)) return true;
            if (is_write && word.read_epoch == block_epoch_ &&
                (unknown(word.reader[0]) || unknown(word.reader[1])))
                return true;
        }
        return false;
    }

    /// No thread.
    static constexpr std::uint16_t NOBODY = 0xffff;
    /// The thread that wrote the word at `offset` last, if any did since the epoch `since`.
    std::uint16_t writer_since(std::uint32_t since, std::size_t offset) const {
        const Word& word = words_[offset / 4];
        return word.write_epoch >= since ? word.writer.thread : NOBODY;
    }
    /// Forgets the accesses to the words in these bytes.
    void forget(std::size_t offset, std::size_t size) {
        for (std::size_t w = offset / 4; w < std::min((offset + size) / 4, words_.size()); ++w)
            words_[w] = {};
    }
    std::size_t words() const { return words_.size(); }
    /// Number of block barriers so far.
    std::uint32_t epoch() const { return block_epoch_; }

  private:
    struct Toucher {
        Time time = 0;  // of the warp's clock
        std::uint16_t thread = NOBODY;
        bool several = false;  // other lanes of the warp did the same, with no order among them
        unsigned warp() const { return thread / 32u; }
    };
    /// What happened since the block barriers numbered write_epoch and read_epoch.
    struct Word {
        std::uint32_t write_epoch = 0, read_epoch = 0;
        Toucher writer;
        Toucher reader[2];  // of different warps
    };

    template <bool MESSAGES>
    bool note(std::size_t thread, std::size_t offset, std::size_t size, bool is_write) {
        const Toucher now{clocks_.now(thread / 32), static_cast<std::uint16_t>(thread)};
        bool clean = true;
        for (std::size_t w = offset / 4; w < (offset + size + 3) / 4; ++w) {
            Word& word = words_[w];
            if (word.write_epoch == block_epoch_) clean &= ordered<MESSAGES>(word.writer, now);
            if (is_write) {
                if (word.read_epoch == block_epoch_)
                    for (const Toucher& reader : word.reader)
                        clean &= reader.thread == NOBODY || ordered<MESSAGES>(reader, now);
                word.write_epoch = block_epoch_;
                word.writer = now;
            } else if (word.read_epoch != block_epoch_) {
                word.read_epoch = block_epoch_;
                word.reader[0] = now;
                word.reader[1].thread = NOBODY;
            } else {
                note_reader<MESSAGES>(word.reader[place_for<MESSAGES>(word, now)], now);
            }
        }
        return clean;
    }

    /// For two accesses between the same block barriers.
    template <bool MESSAGES>
    bool ordered(const Toucher& before, const Toucher& now) const {
        const bool itself = before.thread == now.thread && !before.several;
        if constexpr (MESSAGES)
            return itself || before.time < clocks_.known(now.thread)[before.warp()];
        return before.warp() == now.warp() && (before.time != now.time || itself);
    }

    /// Where to remember one more reader.
    template <bool MESSAGES>
    std::size_t place_for(const Word& word, const Toucher& now) const {
        if (word.reader[0].warp() == now.warp()) return 0;
        if constexpr (MESSAGES) {
            const Toucher& other = word.reader[1];
            // A write that is ordered after this reader is ordered after those before it, too.
            if (other.thread != NOBODY && other.warp() != now.warp() &&
                ordered<MESSAGES>(word.reader[0], now))
                return 0;
        }
        return 1;
    }

    template <bool MESSAGES>
    void note_reader(Toucher& reader, const Toucher& now) const {
        const bool several = reader.warp() == now.warp() && !ordered<MESSAGES>(reader, now);
        reader = now;
        reader.several = several;
    }

    const Clocks& clocks_;
    std::vector<Word> words_;
    std::uint32_t block_epoch_ = 1;
};

}  // namespace fa::executor
