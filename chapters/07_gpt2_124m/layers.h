#pragma once
/// @file
/// Everything in a GPT-2 that is not attention: embedding, layer norm, linear layers, GELU. All
/// matrices are row-major, one row for each token. The rows are shared out among threads in blocks
/// of a fixed size, so that results do not depend on the number of threads.

#include <cstdint>
#include <span>

#include "chapters/07_gpt2_124m/gpt2_weights.h"
#include "common/dtype.h"

namespace fa {

/// How layers compute.
struct Arithmetic {
    DType activations = DType::f32;  ///< each result is rounded to this type; sums are fp32
    int threads = 0;                 ///< 0: as many as OpenMP offers

    /// What `threads` means on this machine.
    int thread_count() const;
};

/// out[i] = wte[tokens[i]] + wpe[first_position + i mod sequence_length].
/// @param tokens  ids in [0, vocabulary), whole sequences of `sequence_length` one after the other
/// @param out     [tokens, width]
void embed(const Gpt2Weights& weights, std::int64_t width, std::span<const std::int32_t> tokens,
           std::int64_t sequence_length, std::int64_t first_position, float* out,
           const Arithmetic& arithmetic);

/// (x − mean)/sqrt(variance + epsilon)·gain + bias for each row (Ba, Kiros, Hinton 2016, "Layer
/// Normalization", section 3; the variance divides by the width).
/// @param x   [rows, width]
/// @param out [rows, width]; may be x
void layer_norm(const NormWeights& norm, const float* x, std::int64_t rows, float epsilon,
                float* out, const Arithmetic& arithmetic);

/// GELU in GPT-2's form, x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))) (Hendrycks and Gimpel 2016,
/// "Gaussian Error Linear Units", section 2), on each value in place. NaN stays NaN, −∞ gives −0.
void gelu_tanh(std::span<float> values);

/// What happens to x·W + b.
enum class Finish {
    store,  ///< out = x·W + b
    gelu,   ///< out = gelu_tanh(x·W + b)
    add,    ///< out = out + (x·W + b), the residual connection
};

/// A linear layer, and the step after it, which is done while a block of the result is in the
/// cache.
/// @param x   [rows, layer.in]
/// @param out [rows, layer.out], apart from x
void linear(const LinearWeights& layer, const float* x, std::int64_t rows, float* out,
            Finish finish, const Arithmetic& arithmetic);

}  // namespace fa
