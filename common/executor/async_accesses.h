#pragma once
/// @file
/// What copies of boxes and products do to shared memory while threads go on, and whether it is in
/// order: for every 16 bytes, what writes them, what wrote them last, and what has read them since.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/executor/clocks.h"
#include "common/executor/race_detector.h"

namespace fa::executor {

/// An asynchronous access lasts from its issue to the moment when someone knows that it is over.
/// Whatever touches the same bytes, one of the two writing, has to be ordered before the issue or
/// after that moment. Asynchronous reads see ordinary writes only if the thread that wrote has
/// published them.
class AsyncAccesses {
  public:
    /// What can read: each warp's products and, behind them, each warp's stores of boxes.
    AsyncAccesses(std::size_t bytes, Clocks& clocks, RaceDetector& races)
        : clocks_(clocks),
          races_(races),
          readers_(2 * clocks.warps()),
          chunks_(bytes / CHUNK + 1),
          reads_(chunks_.size() * readers_, 0),
          writes_(chunks_.size() * WORDS) {}

    /// Number of a warp's products among the readers.
    std::size_t products_of(std::size_t warp) const { return warp; }
    /// Number of a warp's stores of boxes among the readers.
    std::size_t stores_of(std::size_t warp) const { return clocks_.warps() + warp; }

    /// Forgets the block before.
    void start_block() {
        std::fill(chunks_.begin(), chunks_.end(), Chunk{});
        std::fill(reads_.begin(), reads_.end(), 0u);
    }
    /// What threads wrote since the race detector's epoch `since`, when this was not there yet.
    void adopt_writes(std::uint32_t since) {
        for (std::size_t word = 0; word < races_.words(); ++word)
            if (const std::uint16_t writer = races_.writer_since(since, 4 * word);
                writer != RaceDetector::NOBODY)
                note_write(word, writer, 0);
    }

    /// A thread reads or writes.
    /// @param publications of the thread so far
    std::string ordinary(std::size_t thread, std::size_t offset, std::size_t size, bool is_write,
                         std::size_t publications) {
        const Time* const known = clocks_.known(thread);
        for (std::size_t c = offset / CHUNK; c <= (offset + size - 1) / CHUNK; ++c) {
            if (std::string problem = after_copies(c, known); !problem.empty()) return problem;
            if (is_write)
                if (std::string problem = after_reads(c, known); !problem.empty()) return problem;
            chunks_[c].touched = true;
        }
        if (is_write)
            for (std::size_t word = offset / 4; word < (offset + size + 3) / 4; ++word)
                note_write(word, thread, publications);
        return {};
    }

    /// A copy into shared memory begins; whole chunks.
    /// @param known what its thread knows
    std::string begin_copy(const Time* known, std::size_t offset, std::size_t size) {
        for (std::size_t c = offset / CHUNK; c < (offset + size) / CHUNK; ++c) {
            if (std::string problem = after_copies(c, known); !problem.empty()) return problem;
            if (std::string problem = after_reads(c, known); !problem.empty()) return problem;
            if (chunks_[c].touched) {
                if (races_.would_race(known, c * CHUNK, CHUNK, /*is_write=*/true))
                    return fmt::format(
                        "race in shared memory at byte {}: a box is loaded where threads read or "
                        "wrote, with no order between",
                        c * CHUNK);
                races_.forget(c * CHUNK, CHUNK);  // whoever is ordered after the copy is after them
            }
            chunks_[c] = {};
            chunks_[c].arriving = true;
            std::fill_n(reads_.begin() + static_cast<std::ptrdiff_t>(c * readers_), readers_, 0u);
        }
        return {};
    }
    /// It has arrived.
    void end_copy(std::size_t offset, std::size_t size, std::size_t clock, Time time) {
        for (std::size_t c = offset / CHUNK; c < (offset + size) / CHUNK; ++c) {
            chunks_[c].arriving = false;
            chunks_[c].copy_clock = static_cast<std::uint32_t>(clock);
            chunks_[c].copy_time = time;
        }
    }

    /// A product or a store of a box begins to read a chunk.
    /// @param known        what its warp or thread knows
    /// @param itself       the thread, whose own publications need no order; NOBODY for a product
    /// @param publications times of each thread's, so far
    std::string begin_read(std::size_t reader, std::uint32_t sequence, const Time* known,
                           std::size_t itself, std::size_t offset,
                           const std::vector<std::vector<Time>>& publications) {
        const std::size_t c = offset / CHUNK;
        if (std::string problem = after_copies(c, known); !problem.empty()) return problem;
        if (chunks_[c].written) {
            if (races_.would_race(known, c * CHUNK, CHUNK, /*is_write=*/false))
                return fmt::format(
                    "race in shared memory at byte {}: a product or a store of a box reads what a "
                    "thread wrote, with no order between",
                    c * CHUNK);
            for (std::size_t word = c * WORDS; word < (c + 1) * WORDS; ++word) {
                const Write& write = writes_[word];
                if (write.thread == RaceDetector::NOBODY) continue;
                const std::vector<Time>& published = publications[write.thread];
                if (published.size() > write.publications &&
                    (write.thread == itself ||
                     published[write.publications] < known[write.thread / 32u]))
                    continue;
                return fmt::format(
                    "byte {} of shared memory, which a product or a store of a box reads, was "
                    "written by thread {} without publish_for_copies() between the write and what "
                    "orders it before the read",
                    4 * word, write.thread);
            }
        }
        reads_[c * readers_ + reader] = UNDER_WAY | sequence;
        return {};
    }
    /// The read of that number is over.
    void end_read(std::size_t reader, std::uint32_t sequence, std::size_t offset, Time time) {
        Time& entry = reads_[offset / CHUNK * readers_ + reader];
        if (entry == (UNDER_WAY | sequence)) entry = time;  // else a later read is under way
    }

  private:
    static constexpr std::size_t CHUNK = 16, WORDS = CHUNK / 4;
    static constexpr Time UNDER_WAY = 0x80000000u;  ///< a time that nobody knows to have passed

    struct Chunk {
        Time copy_time = 0;            ///< when the last copy arrived
        std::uint32_t copy_clock = 0;  ///< on which clock
        bool arriving = false;         ///< a copy is on its way
        bool written = false;          ///< by threads, since the last copy
        bool touched = false;          ///< the same, or read
    };
    /// The last ordinary write to a word.
    struct Write {
        std::uint16_t thread = RaceDetector::NOBODY;
        std::uint32_t publications = 0;  ///< of the thread before it
    };

    void note_write(std::size_t word, std::size_t thread, std::size_t publications) {
        Chunk& chunk = chunks_[word / WORDS];
        if (!chunk.written)
            std::fill_n(writes_.begin() + static_cast<std::ptrdiff_t>(word / WORDS * WORDS), WORDS,
                        Write{});
        chunk.written = chunk.touched = true;
        writes_[word] = {static_cast<std::uint16_t>(thread),
                         static_cast<std::uint32_t>(publications)};
    }

    std::string after_copies(std::size_t c, const Time* known) const {
        const Chunk& chunk = chunks_[c];
        if (chunk.arriving)
            return fmt::format(
                "byte {} of shared memory is touched while a box that covers it is on its way",
                c * CHUNK);
        if (chunk.copy_time != 0 && chunk.copy_time >= known[chunk.copy_clock])
            return fmt::format(
                "race in shared memory at byte {}: a box arrived there, and this thread has not "
                "waited for its barrier",
                c * CHUNK);
        return {};
    }

    std::string after_reads(std::size_t c, const Time* known) const {
        const Time* const reads = &reads_[c * readers_];
        // Their clocks follow those of the warps, in the same order.
        const Time* const passed = known + clocks_.products_of(0);
        bool in_order = true;
        for (std::size_t r = 0; r < readers_; ++r)
            in_order &= reads[r] == 0 || reads[r] < passed[r];
        if (in_order) return {};
        for (std::size_t r = 0;; ++r) {
            if (reads[r] == 0 || reads[r] < passed[r]) continue;
            const bool is_product = r < clocks_.warps();
            return fmt::format(
                "race in shared memory at byte {}: written while {} of warp {} may still read it{}",
                c * CHUNK, is_product ? "a product" : "a store of a box", r % clocks_.warps(),
                (reads[r] & UNDER_WAY) != 0 ? ", not waited for" : "");
        }
    }

    Clocks& clocks_;
    RaceDetector& races_;
    std::size_t readers_;
    std::vector<Chunk> chunks_;
    std::vector<Time> reads_;    ///< of each chunk, of each reader
    std::vector<Write> writes_;  ///< of each word; valid where the chunk is written
};

}  // namespace fa::executor
