#pragma once
/// @file
/// Exercise: merge two finished outputs that have forgotten m and l and know only their LSE. Fill
/// in the function and run
///
///     scripts/exercise.sh 2

#include <cmath>
#include <limits>
#include <vector>

namespace fa::exercise {

/// The output of one query over some keys, and the logarithm of the sum of their exponentials.
/// Without keys: zeros, and −∞.
struct Finished {
    std::vector<float> output;
    float lse = -std::numeric_limits<float>::infinity();
};

/// What the query would have got from the keys of both.
inline Finished merge([[maybe_unused]] const Finished& a, [[maybe_unused]] const Finished& b) {
    return a;  // your merge
}

}  // namespace fa::exercise
