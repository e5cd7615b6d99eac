#pragma once
/// @file
/// The first fused kernel: one thread block per (query block, head), K and V through shared memory,
/// the online softmax of chapter 2 in registers. Plain on purpose; register_tiled_kernel.h is
/// faster.

#include "chapters/04_cuda_tiled/arguments.h"
#include "chapters/04_cuda_tiled/load_tile.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

// [config]
/// Sizes of the tiled kernel. BLOCK_M queries meet BLOCK_N keys at a time; four neighbouring
/// threads share a query.
/// @tparam PADDED false shows what the padding is good for
template <int HEAD_DIM_, int BLOCK_M_, int BLOCK_N_, bool PADDED = true>
struct TiledConfig {
    static constexpr int HEAD_DIM = HEAD_DIM_, BLOCK_M = BLOCK_M_, BLOCK_N = BLOCK_N_;
    static constexpr int THREADS_PER_ROW = 4;
    static constexpr int THREADS = BLOCK_M * THREADS_PER_ROW;
    // One float of padding moves each row on by one bank. Without it the rows that a warp reads in
    // the same instant, HEAD_DIM floats apart, would all lie in one bank. A warp writes four floats
    // of each of eight rows of P: rows that begin four banks apart fill the 32 banks.
    static constexpr int STRIDE = HEAD_DIM + (PADDED ? 1 : 0);
    static constexpr int P_STRIDE = PADDED ? padded_stride(BLOCK_N, THREADS_PER_ROW) : BLOCK_N;
    // As many blocks' tiles fit on a Hopper multiprocessor; its registers should not hold fewer.
    static constexpr int BLOCKS_PER_MULTIPROCESSOR = 3;
    static constexpr int Q_FLOATS = BLOCK_M * STRIDE, KV_FLOATS = BLOCK_N * STRIDE;
    static constexpr std::size_t SHARED_BYTES =
        sizeof(float) * (Q_FLOATS + 2 * KV_FLOATS + BLOCK_M * P_STRIDE);
};
// [config]

/// Grid: query blocks × heads × batch in x. Block: THREADS. Shared memory: SHARED_BYTES.
/// FlashAttention-2, Algorithm 1.
template <class Config, class T>
__global__ void __launch_bounds__(Config::THREADS, Config::BLOCKS_PER_MULTIPROCESSOR)
    tiled_attention(const KernelArguments<T> a) {
    constexpr int HEAD_DIM = Config::HEAD_DIM, BLOCK_M = Config::BLOCK_M, BLOCK_N = Config::BLOCK_N;
    constexpr int STRIDE = Config::STRIDE, P_STRIDE = Config::P_STRIDE, THREADS = Config::THREADS;
    constexpr int LANES = Config::THREADS_PER_ROW;  // threads of one row
    constexpr int KEYS = BLOCK_N / LANES;       // keys per thread: lane, lane + 4, lane + 8, …
    constexpr int CHANNELS = HEAD_DIM / LANES;  // channels of O per thread, likewise

    const SharedPointer<float> Q_smem = shared_array<float>(0, Config::Q_FLOATS);
    const SharedPointer<float> K_smem =
        shared_array<float>(sizeof(float) * Config::Q_FLOATS, Config::KV_FLOATS);
    const SharedPointer<float> V_smem = shared_array<float>(
        sizeof(float) * (Config::Q_FLOATS + Config::KV_FLOATS), Config::KV_FLOATS);
    const SharedPointer<float> P_smem = shared_array<float>(
        sizeof(float) * (Config::Q_FLOATS + 2 * Config::KV_FLOATS), BLOCK_M * P_STRIDE);

    // [rows]
    const BlockPosition at(a, blockIdx.x, BLOCK_M);
    const int row = static_cast<int>(threadIdx.x) / LANES;
    const int lane = static_cast<int>(threadIdx.x) % LANES;
    const int rows = min(BLOCK_M, a.len_q - at.first_q);
    // Rows past the end work on zeros and are not stored; they must not leave before a barrier.
    const int my_keys = a.visible_keys(min(at.first_q + row, a.len_q - 1));
    // [rows]

    load_tile<BLOCK_M, HEAD_DIM, STRIDE, THREADS, T>(
        a.q + (at.batch * a.q_strides.batch + at.head_q * a.q_strides.head +
               at.first_q * a.q_strides.token),
        a.q_strides.token, rows, a.head_dim, a.wide, a.scale, Q_smem);

    float O_regs[CHANNELS] = {};
    float m = minus_infinity(), l = 0.0f;

    // [tiles]
    // The block's last query sees the most keys. Tiles beyond that are not even loaded.
    const int block_keys = a.visible_keys(at.first_q + rows - 1);
    for (int first_kv = 0; first_kv < block_keys; first_kv += BLOCK_N) {
        __syncthreads();  // nobody reads the last K and V any more (and all have written Q, first)
        const int keys = min(BLOCK_N, a.len_kv - first_kv);
        load_tile<BLOCK_N, HEAD_DIM, STRIDE, THREADS, T>(
            a.k + (at.batch * a.k_strides.batch + at.head_kv * a.k_strides.head +
                   first_kv * a.k_strides.token),
            a.k_strides.token, keys, a.head_dim, a.wide, 1.0f, K_smem);
        load_tile<BLOCK_N, HEAD_DIM, STRIDE, THREADS, T>(
            a.v + (at.batch * a.v_strides.batch + at.head_kv * a.v_strides.head +
                   first_kv * a.v_strides.token),
            a.v_strides.token, keys, a.head_dim, a.wide, 1.0f, V_smem);
        __syncthreads();  // K, V and Q are complete
        // [tiles]

        // [scores]
        // S = scale·Q·Kᵀ, one row, every fourth key
        float S_regs[KEYS] = {};
        for (int c = 0; c < HEAD_DIM; ++c) {
            const float q = Q_smem[row * STRIDE + c];
#pragma unroll
            for (int j = 0; j < KEYS; ++j) S_regs[j] += q * K_smem[(lane + LANES * j) * STRIDE + c];
        }
        // [scores]

        // [softmax]
        // Mask, and the row's new maximum over its four threads
        const int visible = min(max(my_keys - first_kv, 0), BLOCK_N);
        float m_new = m;
#pragma unroll
        for (int j = 0; j < KEYS; ++j) {
            if (lane + LANES * j >= visible) S_regs[j] = minus_infinity();
            m_new = fmaxf(m_new, S_regs[j]);
        }
        m_new = fmaxf(m_new, shuffle_xor(m_new, 1));
        m_new = fmaxf(m_new, shuffle_xor(m_new, 2));

        // P = exp(S − m), and the row's sum. Nothing visible yet: subtract 0, not −∞.
        const float shift = m_new == minus_infinity() ? 0.0f : m_new;
        const float correction = fast_exp(m - shift);
        float sum = 0.0f;
#pragma unroll
        for (int j = 0; j < KEYS; ++j) {
            const float p = fast_exp(S_regs[j] - shift);
            P_smem[row * P_STRIDE + lane + LANES * j] = p;
            sum += p;
        }
        sum += shuffle_xor(sum, 1);
        sum += shuffle_xor(sum, 2);
        l = l * correction + sum;
        m = m_new;
        // [softmax]

        // [weighted-sum]
        // O = O·correction + P·V, one row, every fourth channel
#pragma unroll
        for (int c = 0; c < CHANNELS; ++c) O_regs[c] *= correction;
        warp_barrier();  // a row of P is written and read by the same warp
        // Up to the last visible key only: a masked V may hold NaN, and 0·NaN is NaN.
        for (int j = 0; j < visible; ++j) {
            const float p = P_smem[row * P_STRIDE + j];
#pragma unroll
            for (int c = 0; c < CHANNELS; ++c)
                O_regs[c] += p * V_smem[j * STRIDE + lane + LANES * c];
        }
        warp_barrier();  // P is read before the next tile writes it
        // [weighted-sum]
    }

    if (row >= rows) return;
    const GlobalPointer<T> o = a.o + (at.batch * a.o_strides.batch + at.head_q * a.o_strides.head +
                                      (at.first_q + row) * a.o_strides.token);
    const float inverse = l == 0.0f ? 0.0f : 1.0f / l;  // no visible key: O = 0
#pragma unroll
    for (int c = 0; c < CHANNELS; ++c)
        if (lane + LANES * c < a.head_dim)
            o[lane + LANES * c] = from_float<T>(l == 0.0f ? 0.0f : O_regs[c] * inverse);
    if (a.lse && lane == 0)
        a.lse[at.batch * a.lse_stride_batch + at.head_q * a.lse_stride_head + at.first_q + row] =
            l == 0.0f ? minus_infinity() : m + logf(l);
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
