#include <algorithm>
#include <functional>
#include <string>

#include "common/exercise.h"
#include FA_EXERCISE

namespace {

using fa::TileKind;
using fa::exercise::Rows;

constexpr std::int64_t LENGTH = 48;
constexpr std::int64_t WINDOWS[] = {1, 2, 5, 16, 17, 47, 48, 100};

const char* name_of(TileKind kind) {
    return kind == TileKind::full ? "full" : kind == TileKind::skipped ? "skipped" : "diagonal";
}

/// Tries all tile sizes and windows; `wrong` is told the answer and how many of the tile's pairs of
/// query and key are visible, and says whether that is a fault.
std::string search(const std::function<bool(TileKind, std::int64_t seen, std::int64_t all)>& wrong,
                   std::int64_t longest_window = 1000) {
    for (const std::int64_t block_q : {1, 4, 16, 10})
        for (const std::int64_t block_kv : {1, 4, 16, 7})
            for (const std::int64_t window : WINDOWS) {
                if (window > longest_window) continue;
                for (std::int64_t q = 0; q < LENGTH; q += block_q)
                    for (std::int64_t k = 0; k < LENGTH; k += block_kv) {
                        const Rows queries{q, std::min(block_q, LENGTH - q)};
                        const Rows keys{k, std::min(block_kv, LENGTH - k)};
                        std::int64_t seen = 0;
                        for (std::int64_t i = q; i < q + queries.rows; ++i)
                            for (std::int64_t j = k; j < k + keys.rows; ++j)
                                seen += j <= i && j > i - window;
                        const TileKind kind = kind_of(queries, keys, window);
                        if (wrong(kind, seen, queries.rows * keys.rows))
                            return fmt::format(
                                "window {}, queries {} to {}, keys {} to {}: {}, but {} of {} "
                                "pairs "
                                "are visible",
                                window, q, q + queries.rows - 1, k, k + keys.rows - 1,
                                name_of(kind), seen, queries.rows * keys.rows);
                    }
            }
    return "";
}

}  // namespace

int main() {
    fa::Exercise exercise("Exercise 3.6: a window");
    exercise.invariant(
        "no tile with a visible pair is skipped",
        [] {
            return search([](TileKind kind, std::int64_t seen, std::int64_t) {
                return kind == TileKind::skipped && seen > 0;
            });
        },
        "to the right, the last query of the tile sees furthest; to the left, the first.");
    exercise.invariant(
        "a tile that is called full hides no pair",
        [] {
            return search([](TileKind kind, std::int64_t seen, std::int64_t all) {
                return kind == TileKind::full && seen < all;
            });
        },
        "the last query's window begins last: does the tile's first key lie in it?");
    exercise.invariant(
        "no tile is loaded in vain: without a visible pair it is skipped",
        [] {
            return search([](TileKind kind, std::int64_t seen, std::int64_t) {
                return kind != TileKind::skipped && seen == 0;
            });
        },
        "left of the window there are tiles to skip, too: those whose last key the first query no "
        "longer sees.");
    exercise.invariant(
        "no tile is masked in vain: with all pairs visible it is full",
        [] {
            return search([](TileKind kind, std::int64_t seen, std::int64_t all) {
                return kind == TileKind::diagonal && seen == all;
            });
        },
        "full means: the first query sees the last key, and the last query the first one.");
    return exercise.finish();
}
