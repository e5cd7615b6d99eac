#include "chapters/07_gpt2_124m/cuda_layers.h"

#include "common/cuda/block_reduce.cuh"
#include "common/cuda/device_language.cuh"
#include "common/cuda/launch.cuh"

namespace fa {
namespace {

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;

__device__ std::int64_t global_thread() {
    return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}

template <class T>
__global__ void embed_kernel(const T* token_embedding, const T* position_embedding,
                             const std::int32_t* tokens, std::int64_t rows, std::int64_t length,
                             std::int64_t first_position, std::int64_t width, T* out) {
    const std::int64_t n = global_thread();
    if (n >= rows * width) return;
    const std::int64_t row = n / width, c = n % width;
    out[n] =
        from_float<T>(to_float(token_embedding[tokens[row] * width + c]) +
                      to_float(position_embedding[(first_position + row % length) * width + c]));
}

/// A warp per row. The row is read three times, twice from cache.
template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    layer_norm_kernel(const T* x, const T* gain, const T* bias, std::int64_t rows,
                      std::int64_t width, float epsilon, T* out) {
    const std::int64_t row = std::int64_t{blockIdx.x} * WARPS + threadIdx.x / 32;
    if (row >= rows) return;  // whole warps leave, and no barrier follows
    const int first = static_cast<int>(threadIdx.x % 32) * N;
    x += row * width;
    out += row * width;

    float sum = 0.0f;
    for (std::int64_t c = first; c < width; c += 32 * N) {
        const Packed<T, N> piece = load_packed<N>(x + c);
        for (int e = 0; e < N; ++e) sum += to_float(piece[e]);
    }
    const float mean = warp_sum(sum) / static_cast<float>(width);

    float squares = 0.0f;
    for (std::int64_t c = first; c < width; c += 32 * N) {
        const Packed<T, N> piece = load_packed<N>(x + c);
        for (int e = 0; e < N; ++e) {
            const float centred = to_float(piece[e]) - mean;
            squares += centred * centred;
        }
    }
    const float factor = rsqrtf(warp_sum(squares) / static_cast<float>(width) + epsilon);

    for (std::int64_t c = first; c < width; c += 32 * N) {
        const Packed<T, N> piece = load_packed<N>(x + c), g = load_packed<N>(gain + c),
                           b = load_packed<N>(bias + c);
        Packed<T, N> result;
        for (int e = 0; e < N; ++e)
            result[e] = from_float<T>((to_float(piece[e]) - mean) * factor * to_float(g[e]) +
                                      to_float(b[e]));
        store_packed(out + c, result);
    }
}

// [cross-entropy]
template <class T, int N>
__global__ void __launch_bounds__(THREADS)
    cross_entropy_kernel(const T* logits, std::int64_t stride, std::int64_t vocabulary,
                         const std::int32_t* targets, float* losses) {
    __shared__ float scratch[32];
    logits += blockIdx.x * stride;
    float m = minus_infinity(), l = 0.0f;  // chapter 2's recurrence, per thread
    for (std::int64_t v = threadIdx.x * N; v < vocabulary; v += THREADS * N) {
        const Packed<T, N> piece = load_packed<N>(logits + v);
        float m_new = m;
        for (int e = 0; e < N; ++e)
            if (v + e < vocabulary) m_new = fmaxf(m_new, to_float(piece[e]));
        l *= expf(m - m_new);
        for (int e = 0; e < N; ++e)
            if (v + e < vocabulary) l += expf(to_float(piece[e]) - m_new);
        m = m_new;
    }
    const float row_m = block_maximum(m, scratch);
    // A thread without a logit holds m = −∞, l = 0 and adds exp(−∞)·0 = 0.
    const float row_l = block_sum(l * expf(m - row_m), scratch);
    if (threadIdx.x == 0)
        losses[blockIdx.x] = row_m - to_float(logits[targets[blockIdx.x]]) + logf(row_l);
}
// [cross-entropy]

template <class T>
__global__ void widen_kernel(const T* in, std::int64_t count, float* out) {
    const std::int64_t n = global_thread();
    if (n < count) out[n] = to_float(in[n]);
}

std::int64_t blocks_for(std::int64_t threads) {
    return (threads + THREADS - 1) / THREADS;
}

}  // namespace

template <class T>
void cuda_embed(const T* token_embedding, const T* position_embedding, const std::int32_t* tokens,
                std::int64_t rows, std::int64_t length, std::int64_t first_position,
                std::int64_t width, T* out, cudaStream_t stream) {
    launch(embed_kernel<T>, blocks_for(rows * width), THREADS, 0, stream, token_embedding,
           position_embedding, tokens, rows, length, first_position, width, out);
}

template <class T>
void cuda_layer_norm(const T* x, const T* gain, const T* bias, std::int64_t rows,
                     std::int64_t width, float epsilon, T* out, cudaStream_t stream) {
    const auto kernel = width % 4 == 0 ? layer_norm_kernel<T, 4> : layer_norm_kernel<T, 1>;
    launch(kernel, (rows + WARPS - 1) / WARPS, THREADS, 0, stream, x, gain, bias, rows, width,
           epsilon, out);
}

template <class T>
void cuda_cross_entropy(const T* logits, std::int64_t stride, std::int64_t vocabulary,
                        const std::int32_t* targets, std::int64_t rows, float* losses,
                        cudaStream_t stream) {
    const auto kernel = stride % 4 == 0 ? cross_entropy_kernel<T, 4> : cross_entropy_kernel<T, 1>;
    launch(kernel, rows, THREADS, 0, stream, logits, stride, vocabulary, targets, losses);
}

template <class T>
void cuda_widen(const T* in, std::int64_t count, float* out, cudaStream_t stream) {
    launch(widen_kernel<T>, blocks_for(count), THREADS, 0, stream, in, count, out);
}

#define FA_INSTANTIATE(T)                                                                          \
    template void cuda_embed(const T*, const T*, const std::int32_t*, std::int64_t, std::int64_t,  \
                             std::int64_t, std::int64_t, T*, cudaStream_t);                        \
    template void cuda_layer_norm(const T*, const T*, const T*, std::int64_t, std::int64_t, float, \
                                  T*, cudaStream_t);                                               \
    template void cuda_cross_entropy(const T*, std::int64_t, std::int64_t, const std::int32_t*,    \
                                     std::int64_t, float*, cudaStream_t);                          \
    template void cuda_widen(const T*, std::int64_t, float*, cudaStream_t)
FA_INSTANTIATE(float);
FA_INSTANTIATE(BFloat16);
FA_INSTANTIATE(Float16);
#undef FA_INSTANTIATE

}  // namespace fa
