#pragma once
/// @file
/// The gold: attention in fp64, as plain as it can be written, for tests and accuracy tables.

#include <vector>

#include "common/attention.h"

namespace fa {

/// Result of reference_attention(), dense and in fp64.
struct ReferenceResult {
    std::vector<double> o;    ///< [batch, heads_q, len_q, head_dim]
    std::vector<double> lse;  ///< [batch, heads_q, len_q]
};

/// softmax(scale·Q·Kᵀ + mask)·V by definition, every sum in fp64. The scale is the fp32 value that
/// implementations get, widened. Uses `tensors.q`, `.k`, `.v` (host memory) and ignores the rest.
/// Θ(Tq·Tk·d) per head, one row of scores at a time.
/// @throws std::invalid_argument as validate()
ReferenceResult reference_attention(const AttentionProblem& problem,
                                    const AttentionTensors& tensors);

}  // namespace fa
