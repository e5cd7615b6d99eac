#include <set>
#include <string>

#include "common/exercise.h"
#include "common/tensor_core_language.h"
#include FA_EXERCISE

namespace {

constexpr int MAX_CHUNKS = 40, ROWS = 64;

std::uint32_t address(int row, int chunk, int chunks) {
    return 16 * static_cast<std::uint32_t>(row * chunks + fa::exercise::place(row, chunk, chunks));
}

/// What a warp's accesses cost beyond what they must; nothing if that is no clock.
template <class Kernel>
std::string conflicts(int chunks, const std::string& what, Kernel&& kernel) {
    const auto bytes = static_cast<std::size_t>(16 * ROWS * chunks);
    const fa::executor::Counters c =
        fa::executor::run({1}, {32}, bytes, kernel, {.count_banks = true});
    if (c.bank_conflicts() == 0) return "";
    return fmt::format("rows of {} bytes: {} take {} clocks instead of {}", 16 * chunks, what,
                       c.shared_wavefronts, c.shared_ideal);
}

/// Every chunk of every row by ldmatrix, as the chapter's kernels read Q.
std::string reading(int chunks) {
    return conflicts(chunks, "reads by ldmatrix", [=] {
        const int lane = static_cast<int>(threadIdx.x);
        for (int row = 0; row < ROWS; row += 16)
            for (int chunk = 0; chunk < chunks; ++chunk) {
                const int of_lane = (chunk + lane / 16) % chunks;
                std::uint32_t r[4];
                fa::load_matrices(r, fa::shared_address(address(row + lane % 16, of_lane, chunks)));
            }
    });
}

/// The whole tile chunk by chunk, as a block copies it: neighbours in a row by neighbouring lanes.
std::string writing(int chunks) {
    return conflicts(chunks, "copies", [=] {
        for (int n = static_cast<int>(threadIdx.x); n < ROWS * chunks; n += 32)
            fa::store_shared(fa::shared_address(address(n / chunks, n % chunks, chunks)),
                             fa::Packed<std::uint32_t, 4>{});
    });
}

std::string same_place(int chunks) {
    for (int row = 0; row < ROWS; ++row) {
        std::set<int> places;
        for (int chunk = 0; chunk < chunks; ++chunk) {
            const int place = fa::exercise::place(row, chunk, chunks);
            if (place < 0 || place >= chunks)
                return fmt::format("row {} of {} chunks: chunk {} in place {}", row, chunks, chunk,
                                   place);
            if (!places.insert(place).second)
                return fmt::format("row {} of {} chunks: two chunks in place {}", row, chunks,
                                   place);
        }
    }
    return "";
}

/// The first number of chunks with which something is found.
template <class Find>
std::string first_found(Find&& find) {
    for (int chunks = 1; chunks <= MAX_CHUNKS; ++chunks)
        if (std::string found = find(chunks); !found.empty()) return found;
    return "";
}

}  // namespace

int main() {
    fa::Exercise exercise("Exercise 8.4: a swizzle for any row");
    exercise.invariant(
        "every chunk has a place of its own in its row", [] { return first_found(same_place); },
        "what is done to the number of a chunk must stay within the row: with 12 chunks, an XOR "
        "with 7 leads from chunk 11 to 12.");
    exercise.invariant(
        "64 columns: ldmatrix finds its eight rows in eight places", [] { return reading(8); },
        "such a row is all banks, so every row begins in bank 0. Let the row decide in which of "
        "the eight places a chunk lies.");
    exercise.invariant(
        "128 columns: eight rows in eight places", [] { return reading(16); },
        "two times all banks: every row still begins in bank 0, and each of its halves is a row of "
        "64 columns.");
    exercise.invariant(
        "96 columns: eight rows in eight places", [] { return reading(12); },
        "odd rows begin in the middle of the banks by themselves. Which rows begin alike, and how "
        "many places are there to keep them apart?");
    exercise.invariant(
        "any number of columns: eight rows in eight places", [] { return first_found(reading); },
        "what decides is the largest power of two, up to 8, that divides the number of chunks: how "
        "many successive rows begin in different banks?");
    exercise.invariant(
        "the copy of a tile meets no bank twice either", [] { return first_found(writing); },
        "eight neighbouring lanes write eight neighbouring chunks: these must not lie 128 bytes "
        "apart.");
    return exercise.finish();
}
