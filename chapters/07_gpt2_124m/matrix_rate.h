#pragma once
/// @file
/// How fast this machine multiplies the network's matrices, the ceiling for all but attention; and
/// what that says of the time outside attention.

#include <nlohmann/json_fwd.hpp>

#include "chapters/07_gpt2_124m/experiment.h"
#include "chapters/07_gpt2_124m/gpt2_model.h"
#include "chapters/07_gpt2_124m/layers.h"

namespace fa {

/// FLOP/s of the network's widest linear layer on 2048 random tokens: the best of a few runs, about
/// half a second in all.
double measure_matrix_rate(const Gpt2& model, const Arithmetic& arithmetic, std::uint64_t seed);

/// The same on the GPU, as cuda_gpt2.cpp multiplies: by cuBLASLt, the bias added, in a type of
/// activations; the best of a few replays of a graph.
/// @param rows random tokens, as many as go through the network together
/// @throws std::invalid_argument without CUDA in the build; OutOfDeviceMemory
double measure_cuda_matrix_rate(const Gpt2& model, DType type, std::int64_t rows,
                                std::uint64_t seed);

/// What is not attention in a run: the matrix products at their measured rate, and all of it by the
/// clock.
struct OutsideAttention {
    const Run* run = nullptr;
    double flops = 0;             ///< of all matrix products
    double flops_per_second = 0;  ///< of the widest layer
    double seconds = 0;           ///< measured

    double predicted_seconds() const { return flops / flops_per_second; }
    /// Of the bound that the products alone are, in [0, 1] if nothing was mismeasured.
    double bound_share() const { return predicted_seconds() / seconds; }
};

/// Measures the rate on the run's device, in its type, and compares.
/// @param model   its weights already rounded to the run's activations
/// @param threads of the CPU
OutsideAttention outside_attention(const Gpt2& model, const EvaluationPlan& plan, const Run& run,
                                   int threads, std::uint64_t seed);

/// {implementation, device, dtype, matrix_flops, matrix_flops_per_s, predicted_seconds, seconds,
/// bound_share}
nlohmann::ordered_json to_json(const OutsideAttention& outside);

}  // namespace fa
