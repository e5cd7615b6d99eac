#pragma once
/// @file
/// How long the chapter's kernels must take at least on an H200, unit by unit.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "common/attention.h"
#include "common/cost_model.h"

namespace fa {

/// Seconds that each unit is busy, all multiprocessors at work.
struct Busy {
    double memory = 0;        ///< bytes to and from global memory
    double products = 0;      ///< multiply-adds, on tensor cores or not
    double shared = 0;        ///< clocks of shared memory; 0: not known
    double exponentials = 0;  ///< of the softmax

    /// The prediction: all overlap, and the slowest is the one that counts.
    double longest() const;
    /// The name of the slowest.
    std::string_view bound() const;
};

/// A kernel, or a step of the naive way.
struct Prediction {
    std::string name;
    Busy busy;
};

/// What the steps of "cuda_naive" move and compute: a clean copy of V and a last copy of O; S = QKᵀ
/// in fp32; the softmax, which reads the scores that are seen and writes all of P in the problem's
/// type; O = PV.
std::array<Cost, 4> cuda_naive_cost(const AttentionProblem& problem);

/// The steps of "naive", then "tiled" and "register_tiled". The clocks of shared memory are counted
/// by the executor, for one tile.
std::vector<Prediction> predictions(const AttentionProblem& problem);

}  // namespace fa
