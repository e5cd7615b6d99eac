#pragma once
/// @file
/// How wrong a result is, and how wrong it may be.

#include <functional>
#include <span>

#include "common/attention.h"

namespace fa {

/// The error of an output against fp64.
struct Errors {
    double largest = 0;   ///< largest |O − gold|
    double rms = 0;       ///< root of the mean square
    double relative = 0;  ///< largest error over the largest |gold| among 32 neighbouring rows
};

/// Compares all elements. Rows are judged 32 by 32, against the largest |O| among them: rows with
/// few keys have large outputs, and would hide the errors of the others. NaN comes out as NaN.
/// @param o,gold rows of `head_dim` elements
/// @throws std::invalid_argument if the two differ in size
Errors errors_of(std::span<const float> o, std::span<const double> gold, std::int64_t head_dim);

/// The bound on Errors::relative: twice what the naive attention of the same type errs, plus two
/// roundings to that type, plus what a sum of len_kv terms in fp32 may lose in any order, √n·2⁻²⁴.
/// It is not for implementations with `rounds_scores`: chapter 7 shows what that rounding costs.
double relative_bound(const AttentionProblem& problem, double naive_relative);

/// What a look at a few rows of a timed output found.
struct SpotCheck {
    double largest = 0;  ///< largest |O − gold|
    double share = 0;    ///< the relative error over its bound: right if <= 1
};

/// Copies bytes from where the tensors live to the host.
using CopyToHost = std::function<void(void* to, const void* from, std::size_t bytes)>;

/// Compares some rows of O with fp64: the first, the last, and a dozen drawn from the seed. What
/// was timed must also be right, and at 16k tokens there is no time to compare all of it.
/// @param tensors dense, with O computed
SpotCheck spot_check(const AttentionProblem& problem, const AttentionTensors& tensors,
                     const CopyToHost& copy, std::uint64_t seed);

}  // namespace fa
