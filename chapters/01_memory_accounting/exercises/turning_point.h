#pragma once
/// @file
/// Exercise: from which length on does a kernel that never writes S wait for the matrix units, and
/// no longer for memory? Fill in the function and run
///
///     scripts/exercise.sh 1

#include "common/cost_model.h"

namespace fa::exercise {

/// The smallest T from 1 to `longest` at which blocked attention with Q outside, len_q = len_kv =
/// T, waits for the products; 0 if there is none. bound_of() says what q_outer_cost() waits for.
/// @param shape all of the problem but its lengths
inline std::int64_t first_bound_by_products([[maybe_unused]] const AttentionProblem& shape,
                                            [[maybe_unused]] TileSize tiles,
                                            [[maybe_unused]] const Ceilings& ceilings,
                                            [[maybe_unused]] std::int64_t longest) {
    return 0;  // your search
}

}  // namespace fa::exercise
