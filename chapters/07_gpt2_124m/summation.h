#pragma once
/// @file
/// Four ways to sum the exponentials of a softmax over a large vocabulary, and what each loses.

#include <cstdint>
#include <span>
#include <vector>

namespace fa {

/// log Σ exp(logit) of the same logits, the largest subtracted first, summed in four ways.
struct LogSums {
    double running_fp32 = 0;  ///< one after the other into one float
    double lanes_fp32 = 0;    ///< into 16 floats in turn, as a vector register does
    double blocks_fp32 = 0;   ///< blocks of 512 in fp32, the blocks in fp64: cross_entropy()'s way
    double fp64 = 0;          ///< all in fp64
};

/// Computes them. All 0 for no logits.
LogSums log_sums(std::span<const float> logits);

/// Logits whose probabilities fall as rank^(−exponent), in an order shuffled by `seed`: a made-up
/// vocabulary with the long tail that words have.
std::vector<float> power_law_logits(std::int64_t vocabulary, double exponent, std::uint64_t seed);

}  // namespace fa
