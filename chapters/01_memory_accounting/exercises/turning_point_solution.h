#pragma once
/// @file
/// Solution of the exercise on the turning point.
///
/// Bytes are 2·T·d for Q and O and 2·T·d for K and V for each of the T/Br blocks of queries; FLOPs
/// are 4·T²·d. FLOPs a byte therefore grow with T, towards 2·Br/(bytes of an element), and cross
/// the machine's own ratio once if that limit lies above it, and never if it lies below. But they
/// do not grow at every step: when T passes a multiple of Br, one block more reads all of K and V.
/// Near the turning point memory and products take turns, and halving an interval, which needs
/// "once yes, always yes", may find a later T than the first.

#include "common/cost_model.h"

namespace fa::exercise {

/// The smallest T at which the products take longest.
inline std::int64_t first_bound_by_products(const AttentionProblem& shape, TileSize tiles,
                                            const Ceilings& ceilings, std::int64_t longest) {
    for (std::int64_t length = 1; length <= longest; ++length) {
        AttentionProblem problem = shape;
        problem.len_q = problem.len_kv = length;
        if (bound_of(ceilings, q_outer_cost(problem, tiles)) == "products") return length;
    }
    return 0;
}

}  // namespace fa::exercise
