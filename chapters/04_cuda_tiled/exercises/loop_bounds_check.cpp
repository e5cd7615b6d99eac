#include <algorithm>
#include <functional>
#include <string>

#include "common/exercise.h"
#include FA_EXERCISE

namespace {

using fa::exercise::Loops;
using Lengths = std::function<bool(std::int64_t len_q, std::int64_t len_kv, std::int64_t block_m,
                                   std::int64_t block_n)>;
/// Says what is wrong with the loops, given the right ones; nothing if all is well.
using Fault = std::function<std::string(const Loops& found, const Loops& right)>;

/// The mask's definition, pair by pair.
bool sees(std::int64_t query, std::int64_t key, std::int64_t len_q, std::int64_t len_kv) {
    return key <= query + len_kv - len_q;
}

/// Counted over the pairs of the block, by the definitions of `unmasked` and `tiles` alone.
Loops counted(std::int64_t first_q, std::int64_t block_m, std::int64_t block_n, std::int64_t len_q,
              std::int64_t len_kv) {
    const std::int64_t end_q = std::min(first_q + block_m, len_q);
    Loops right;
    bool all_before = true;
    for (std::int64_t n = 0; n * block_n < len_kv; ++n) {
        bool all = true, any = false;
        for (std::int64_t i = first_q; i < end_q; ++i)
            for (std::int64_t j = n * block_n; j < (n + 1) * block_n; ++j) {
                const bool visible = j < len_kv && sees(i, j, len_q, len_kv);
                all = all && visible;
                any = any || visible;
            }
        all_before = all_before && all;
        if (all_before) right.unmasked = n + 1;
        if (any) right.tiles = n + 1;
    }
    return right;
}

/// The first fault over all blocks of all problems that are wanted.
std::string search(const Lengths& wanted, const Fault& fault) {
    constexpr std::int64_t LENGTHS[] = {1, 3, 8, 16, 17, 24, 31};
    for (const std::int64_t block_m : {1, 8, 5})
        for (const std::int64_t block_n : {1, 8, 3})
            for (const std::int64_t len_q : LENGTHS)
                for (const std::int64_t len_kv : LENGTHS) {
                    if (!wanted(len_q, len_kv, block_m, block_n)) continue;
                    for (std::int64_t first = 0; first < len_q; first += block_m) {
                        const Loops found =
                            fa::exercise::loops(first, block_m, block_n, len_q, len_kv);
                        const Loops right = counted(first, block_m, block_n, len_q, len_kv);
                        if (const std::string what = fault(found, right); !what.empty())
                            return fmt::format(
                                "{} (len_q {}, len_kv {}; queries from {}, {} to a "
                                "block; {} keys to a tile)",
                                what, len_q, len_kv, first, block_m, block_n);
                    }
                }
    return "";
}

bool any_lengths(std::int64_t, std::int64_t, std::int64_t, std::int64_t) {
    return true;
}

std::string too_few(const Loops& found, const Loops& right) {
    return found.tiles >= right.tiles ? ""
                                      : fmt::format(
                                            "the loops end at tile {}, and tile {} holds "
                                            "a visible key",
                                            found.tiles, right.tiles - 1);
}

std::string hidden(const Loops& found, const Loops& right) {
    return found.unmasked <= right.unmasked
               ? ""
               : fmt::format("{} tiles without a mask, but only {} are full and wholly visible",
                             found.unmasked, right.unmasked);
}

}  // namespace

int main() {
    fa::Exercise exercise("Exercise 4.5: where the loop ends");
    exercise.invariant(
        "equal lengths that the tiles divide: what must be seen is, and what must not is not",
        [] {
            return search(
                [](auto len_q, auto len_kv, auto block_m, auto block_n) {
                    return len_q == len_kv && len_q % block_m == 0 && len_kv % block_n == 0;
                },
                [](const Loops& found, const Loops& right) {
                    const std::string fault = too_few(found, right);
                    return fault.empty() ? hidden(found, right) : fault;
                });
        },
        "query i sees i + 1 keys. The block's first query sees fewest, its last one most.");
    exercise.invariant(
        "counts are counts: 0 <= unmasked <= tiles",
        [] {
            return search(any_lengths, [](const Loops& found, const Loops&) {
                return found.unmasked >= 0 && found.unmasked <= found.tiles
                           ? ""
                           : fmt::format("{} unmasked of {} tiles", found.unmasked, found.tiles);
            });
        },
        "a query sees 0 keys at least, not -5; and -5 / 8 is 0 in C++, rounded up.");
    exercise.invariant(
        "no visible key is left out, whatever the lengths",
        [] { return search(any_lengths, too_few); },
        "bottom-right: with more keys than queries each query sees len_kv - len_q keys more.");
    exercise.invariant(
        "no tile without a mask hides a pair, or reaches beyond the last key",
        [] { return search(any_lengths, hidden); },
        "with more queries than keys the first query of the block sees fewer keys, down to none.");
    exercise.invariant(
        "no tile is loaded in vain",
        [] {
            return search(any_lengths, [](const Loops& found, const Loops& right) {
                return found.tiles <= right.tiles ? ""
                                                  : fmt::format("{} tiles, {} hold a visible key",
                                                                found.tiles, right.tiles);
            });
        },
        "the last block may hang over the end: its last query is the last that exists.");
    exercise.invariant(
        "no tile is masked in vain",
        [] {
            return search(any_lengths, [](const Loops& found, const Loops& right) {
                return found.unmasked == right.unmasked
                           ? ""
                           : fmt::format("{} tiles without a mask, could be {}", found.unmasked,
                                         right.unmasked);
            });
        },
        "a tile needs no mask if it ends with, or before, the last key that the first query sees.");
    return exercise.finish();
}
