#pragma once
/// @file
/// The small layers of a GPT-2 on the GPU: embedding, layer norm, cross-entropy. Values in T,
/// statistics in fp32. All pointers are to device memory; the calls return before the work is done.
/// @tparam T float, BFloat16 or Float16

#include <cuda_runtime_api.h>

#include <cstdint>

namespace fa {

/// out[i] = token_embedding[tokens[i]] + position_embedding[first_position + i mod length].
/// @param out [rows, width]
template <class T>
void cuda_embed(const T* token_embedding, const T* position_embedding, const std::int32_t* tokens,
                std::int64_t rows, std::int64_t length, std::int64_t first_position,
                std::int64_t width, T* out, cudaStream_t stream);

/// (x − mean)/sqrt(variance + epsilon)·gain + bias for each row; the variance is the mean square of
/// what is left after the mean is taken off, in a second pass, so that a large mean does no harm.
/// @param x, out [rows, width]
template <class T>
void cuda_layer_norm(const T* x, const T* gain, const T* bias, std::int64_t rows,
                     std::int64_t width, float epsilon, T* out, cudaStream_t stream);

/// losses[i] = log Σ_v exp(logits[i, v]) − logits[i, targets[i]], one thread block per row. The sum
/// runs in as many parts as the block has threads, and those meet in a tree.
/// @param logits [rows, stride], of which the first `vocabulary` columns count
template <class T>
void cuda_cross_entropy(const T* logits, std::int64_t stride, std::int64_t vocabulary,
                        const std::int32_t* targets, std::int64_t rows, float* losses,
                        cudaStream_t stream);

/// out[i] = in[i] as fp32.
template <class T>
void cuda_widen(const T* in, std::int64_t count, float* out, cudaStream_t stream);

}  // namespace fa
