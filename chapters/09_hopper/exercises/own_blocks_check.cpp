#include <algorithm>
#include <functional>
#include <string>

#include "common/exercise.h"
#include FA_EXERCISE

namespace {

using fa::exercise::Tile;
using fa::exercise::Work;
using Wanted = std::function<bool(const Tile&)>;

/// What is right, and how many blocks from 0 on all queries see wholly.
struct Right : Work {
    int whole = 0;
};
/// Says what is wrong with the work, given the right one; nothing if all is well.
using Fault = std::function<std::string(const Work& found, const Right& right)>;

/// The mask's definition, pair by pair.
bool sees(const Tile& tile, int query, int key) {
    return query < tile.len_q && key < tile.len_kv &&
           (!tile.causal || key <= query + tile.len_kv - tile.len_q);
}

/// Counted pair by pair, by the definitions alone.
Right counted(const Tile& tile, int w) {
    const auto any = [&](int n, int first, int rows) {
        for (int i = first; i < first + rows; ++i)
            for (int j = n * tile.block_n; j < (n + 1) * tile.block_n; ++j)
                if (sees(tile, i, j)) return true;
        return false;
    };
    const int first = tile.first_q + w * tile.rows;
    const int end = std::min(first + tile.rows, tile.len_q);
    int blocks = 0, own = 0;
    for (int n = 0; n * tile.block_n < tile.len_kv; ++n) {
        if (any(n, tile.first_q, tile.warpgroups * tile.rows)) blocks = n + 1;
        if (any(n, first, tile.rows)) own = n + 1;
    }
    // Without a mask may be done what all queries see wholly, once all have met a key that can.
    int whole = 0, plain = 0;
    for (int n = 0; n < own && whole == n; ++n) {
        bool all = true, met = true;
        for (int i = first; i < end; ++i) {
            bool sees_any = false, sees_later = false;
            for (int j = 0; j < tile.len_kv; ++j) {
                sees_any = sees_any || sees(tile, i, j);
                sees_later = sees_later || (j >= (n + 1) * tile.block_n && sees(tile, i, j));
            }
            for (int j = n * tile.block_n; j < (n + 1) * tile.block_n; ++j)
                all = all && sees(tile, i, j);
            met = met && (sees_later || !sees_any);
        }
        if (all) whole = n + 1;
        if (all && met) plain = n + 1;
    }
    return {{.stages = blocks == 0 ? 0 : blocks + 1,
             .skipped = blocks - own,
             .masked = own - plain,
             .plain = plain},
            whole};
}

/// The first fault over all warpgroups of all tiles that are wanted.
std::string search(const Wanted& wanted, const Fault& fault) {
    constexpr int LENGTHS[] = {1, 4, 7, 8, 12, 16, 23};
    for (const int warpgroups : {1, 2, 4})
        for (const int block_n : {4, 5, 8})
            for (const int len_q : LENGTHS)
                for (const int len_kv : LENGTHS)
                    for (const bool causal : {true, false})
                        for (int first = 0; first < len_q; first += 4 * warpgroups) {
                            const Tile tile{first, warpgroups, 4, block_n, len_q, len_kv, causal};
                            if (!wanted(tile)) continue;
                            for (int w = 0; w < warpgroups; ++w) {
                                const std::string what =
                                    fault(fa::exercise::work(tile, w), counted(tile, w));
                                if (!what.empty())
                                    return fmt::format(
                                        "{} (warpgroup {} of {}, 4 queries each from {} on; {} "
                                        "keys to a block; len_q {}, len_kv {}, {})",
                                        what, w, warpgroups, first, block_n, len_q, len_kv,
                                        causal ? "causal" : "full");
                            }
                        }
    return "";
}

bool any_tile(const Tile&) {
    return true;
}
bool all_queries_exist(const Tile& tile) {
    return tile.first_q + tile.warpgroups * tile.rows <= tile.len_q;
}

std::string in_words(const Work& w) {
    return fmt::format("{} skipped, {} masked, {} plain, {} stages", w.skipped, w.masked, w.plain,
                       w.stages);
}

}  // namespace

int main() {
    fa::Exercise exercise("Exercise 9.3: a warpgroup's own blocks");
    exercise.invariant(
        "equal lengths, square blocks: each warpgroup skips what lies beyond its own diagonal",
        [] {
            return search(
                [](const Tile& tile) {
                    return tile.causal && tile.len_q == tile.len_kv && tile.block_n == tile.rows &&
                           all_queries_exist(tile);
                },
                [](const Work& found, const Right& right) {
                    const bool same = found.skipped == right.skipped &&
                                      found.masked == right.masked && found.plain == right.plain &&
                                      found.stages == right.stages;
                    return same ? ""
                                : fmt::format("{}; should be {}", in_words(found), in_words(right));
                });
        },
        "of 4 warpgroups the first skips 3 blocks and the last none.");
    exercise.invariant(
        "no block that a query sees is skipped, whatever the lengths",
        [] {
            return search(any_tile, [](const Work& found, const Right& right) {
                return found.skipped <= right.skipped ? ""
                                                      : fmt::format("{} blocks skipped, {} may be",
                                                                    found.skipped, right.skipped);
            });
        },
        "what the tile needs less what the warpgroup needs: both follow from the last query of a "
        "range that exists.");
    exercise.invariant(
        "no block is multiplied in vain",
        [] {
            return search(any_tile, [](const Work& found, const Right& right) {
                return found.skipped >= right.skipped ? ""
                                                      : fmt::format("{} blocks skipped, {} may be",
                                                                    found.skipped, right.skipped);
            });
        },
        "a tile may hang over the end: a warpgroup all of whose queries do not exist sees "
        "nothing.");
    exercise.invariant(
        "a warpgroup goes through all blocks of its tile, and leaves the ring as the others do",
        [] {
            return search(any_tile, [](const Work& found, const Right& right) -> std::string {
                const int blocks = right.skipped + right.masked + right.plain;
                if (found.skipped + found.masked + found.plain != blocks || found.skipped < 0 ||
                    found.masked < 0 || found.plain < 0)
                    return fmt::format("{}; the tile has {} blocks", in_words(found), blocks);
                if (found.stages != right.stages)
                    return fmt::format("{} stages for {} blocks", found.stages, blocks);
                return "";
            });
        },
        "the values of a block come a stage later than its keys. A tile that sees no key has no "
        "stage at all.");
    exercise.invariant(
        "no block without a mask hides a pair",
        [] {
            return search(any_tile, [](const Work& found, const Right& right) {
                return found.plain <= right.whole
                           ? ""
                           : fmt::format("{} blocks without a mask, but only {} are wholly visible",
                                         found.plain, right.whole);
            });
        },
        "the first query of the warpgroup sees fewest, with more queries than keys even none.");
    exercise.invariant(
        "every query that sees a key has met one when the masks end",
        [] {
            return search(any_tile, [](const Work& found, const Right& right) {
                return found.plain <= right.plain
                           ? ""
                           : fmt::format("{} blocks without a mask, {} may be", found.plain,
                                         right.plain);
            });
        },
        "the block that holds the last key of the first query is masked even if it ends there.");
    exercise.invariant(
        "no block is masked in vain",
        [] {
            return search(any_tile, [](const Work& found, const Right& right) {
                return found.masked <= right.masked ? ""
                                                    : fmt::format("{} blocks masked, {} need to be",
                                                                  found.masked, right.masked);
            });
        },
        "one block further down all queries see everything.");
    return exercise.finish();
}
