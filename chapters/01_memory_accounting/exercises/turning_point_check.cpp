#include <string>

#include "common/cost_model.h"
#include "common/exercise.h"
#include FA_EXERCISE

namespace {

using fa::TileSize;

const fa::AttentionProblem SHAPE{
    .batch = 1, .heads_q = 1, .heads_kv = 1, .head_dim = 64, .dtype = fa::DType::bf16};
constexpr std::int64_t LONGEST = 4096;

std::int64_t found_for(TileSize tiles, const fa::Ceilings& ceilings) {
    return fa::exercise::first_bound_by_products(SHAPE, tiles, ceilings, LONGEST);
}

std::string_view bound_at(std::int64_t length, TileSize tiles, const fa::Ceilings& ceilings) {
    fa::AttentionProblem problem = SHAPE;
    problem.len_q = problem.len_kv = length;
    return fa::bound_of(ceilings, fa::q_outer_cost(problem, tiles));
}

}  // namespace

int main() {
    const fa::Ceilings h200 = fa::h200_ceilings();
    fa::Exercise exercise("Exercise 1.3: the turning point");
    const TileSize tiles{.q = 454, .kv = 64};
    exercise.invariant(
        "at the length found, the kernel waits for the products",
        [&] {
            const std::int64_t length = found_for(tiles, h200);
            if (length < 1) return fmt::format("no length up to {}", LONGEST);
            const std::string_view bound = bound_at(length, tiles, h200);
            return bound == "products" ? ""
                                       : fmt::format("at T = {} it waits for {}", length, bound);
        },
        "set len_q and len_kv to T, ask q_outer_cost() for the cost and bound_of() for the bound.");
    exercise.invariant(
        "at every shorter length it does not",
        [&] {
            const std::int64_t length = found_for(tiles, h200);
            for (std::int64_t shorter = 1; shorter < length; ++shorter)
                if (bound_at(shorter, tiles, h200) == "products")
                    return fmt::format("found {}, but {} waits for the products, too", length,
                                       shorter);
            return std::string();
        },
        "is the answer yes at every T after the first yes? Look what one row of Q more costs when "
        "T passes a multiple of the tile.");
    exercise.invariant(
        "small tiles never get there: K and V are read too often",
        [&] {
            const std::int64_t length = found_for({.q = 64, .kv = 64}, h200);
            return length == 0 ? "" : fmt::format("T = {}", length);
        },
        "return 0 when no length up to the longest waits for the products.");
    exercise.invariant(
        "a memory ten times as fast makes the turning point come earlier",
        [&] {
            fa::Ceilings fast = h200;
            fast.bytes_per_s *= 10;
            const std::int64_t before = found_for(tiles, h200), after = found_for(tiles, fast);
            return after >= 1 && after < before ? ""
                                                : fmt::format("{} before, {} now", before, after);
        },
        "use the ceilings that are given, not those of one machine.");
    return exercise.finish();
}
