#pragma once
/// @file
/// What the register-tiled kernels of chapters 4 and 5 share: their sizes, the tiles of a block in
/// shared memory and how they are filled, reductions along a row, and the way out for O and LSE.

#include "chapters/04_cuda_tiled/arguments.h"
#include "chapters/04_cuda_tiled/load_tile.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

// [config]
/// Sizes of a register-tiled kernel: THREADS_Y × THREADS_X threads; a thread owns ROWS queries
/// and, of them, KEYS columns of S and CHANNELS columns of O.
/// @tparam PADDED false shows what the padding is good for
template <int HEAD_DIM_, int BLOCK_M_, int BLOCK_N_, int THREADS_Y_, int THREADS_X_,
          bool PADDED = true>
struct RegisterTiledConfig {
    static constexpr int HEAD_DIM = HEAD_DIM_, BLOCK_M = BLOCK_M_, BLOCK_N = BLOCK_N_;
    static constexpr int THREADS_Y = THREADS_Y_, THREADS_X = THREADS_X_;
    static constexpr int THREADS = THREADS_Y * THREADS_X;
    static constexpr int ROWS = BLOCK_M / THREADS_Y;
    static constexpr int KEYS = BLOCK_N / THREADS_X;
    static constexpr int CHANNELS = HEAD_DIM / THREADS_X;
    // Shared rows are read four floats at a time. Four floats of padding move each row on by one
    // 16-byte slot, so that eight threads reading eight rows meet eight different slots. P is
    // written a float at a time, THREADS_X of each row of a warp side by side.
    static constexpr int STRIDE = HEAD_DIM + (PADDED ? 4 : 0);
    static constexpr int P_STRIDE = PADDED ? padded_stride(BLOCK_N, THREADS_X) : BLOCK_N;
    static constexpr int Q_FLOATS = BLOCK_M * STRIDE, KV_FLOATS = BLOCK_N * STRIDE;
    static constexpr int P_FLOATS = BLOCK_M * P_STRIDE;
    static constexpr std::size_t SHARED_BYTES =
        sizeof(float) * (Q_FLOATS + 2 * KV_FLOATS + P_FLOATS);

    static_assert(BLOCK_M % THREADS_Y == 0 && BLOCK_N % THREADS_X == 0);
    static_assert(CHANNELS % 4 == 0 && BLOCK_N % 4 == 0 && HEAD_DIM % 4 == 0);
    static_assert((THREADS_X == 8 || THREADS_X == 16) && THREADS % 32 == 0);
};
// [config]

/// The tiles of a block in shared memory, all fp32.
template <class Config>
struct BlockTiles {
    static constexpr int BLOCK_M = Config::BLOCK_M, BLOCK_N = Config::BLOCK_N;
    static constexpr int HEAD_DIM = Config::HEAD_DIM, STRIDE = Config::STRIDE;
    static constexpr int THREADS = Config::THREADS;

    SharedPointer<float> Q_smem;  ///< [BLOCK_M][STRIDE]
    SharedPointer<float> K_smem;  ///< [BLOCK_N][STRIDE]
    SharedPointer<float> V_smem;  ///< [BLOCK_N][STRIDE]
    SharedPointer<float> P_smem;  ///< [BLOCK_M][P_STRIDE]

    __device__ BlockTiles()
        : Q_smem(shared_array<float>(0, Config::Q_FLOATS)),
          K_smem(shared_array<float>(sizeof(float) * Config::Q_FLOATS, Config::KV_FLOATS)),
          V_smem(shared_array<float>(sizeof(float) * (Config::Q_FLOATS + Config::KV_FLOATS),
                                     Config::KV_FLOATS)),
          P_smem(shared_array<float>(sizeof(float) * (Config::Q_FLOATS + 2 * Config::KV_FLOATS),
                                     Config::P_FLOATS)) {}

    /// Q_smem = factor·Q, the block's queries; zeros after the last.
    template <class T>
    __device__ __forceinline__ void load_queries(const KernelArguments<T>& a,
                                                 const BlockPosition& at, float factor) const {
        load_tile<BLOCK_M, HEAD_DIM, STRIDE, THREADS, T>(
            a.q + (at.batch * a.q_strides.batch + at.head_q * a.q_strides.head +
                   at.first_q * a.q_strides.token),
            a.q_strides.token, min(BLOCK_M, a.len_q - at.first_q), a.head_dim, a.wide, factor,
            Q_smem);
    }

    /// K_smem and V_smem: keys first_kv … first_kv + BLOCK_N − 1; zeros after the last.
    template <class T>
    __device__ __forceinline__ void load_keys(const KernelArguments<T>& a, const BlockPosition& at,
                                              int first_kv) const {
        const int keys = min(BLOCK_N, a.len_kv - first_kv);
        load_tile<BLOCK_N, HEAD_DIM, STRIDE, THREADS, T>(
            a.k + (at.batch * a.k_strides.batch + at.head_kv * a.k_strides.head +
                   first_kv * a.k_strides.token),
            a.k_strides.token, keys, a.head_dim, a.wide, 1.0f, K_smem);
        load_tile<BLOCK_N, HEAD_DIM, STRIDE, THREADS, T>(
            a.v + (at.batch * a.v_strides.batch + at.head_kv * a.v_strides.head +
                   first_kv * a.v_strides.token),
            a.v_strides.token, keys, a.head_dim, a.wide, 1.0f, V_smem);
    }
};

/// The threads of one row of the thread grid are neighbours in a warp: a row's maximum or sum is a
/// few shuffles away.
template <int THREADS_X>
__device__ __forceinline__ float row_maximum(float x) {
#pragma unroll
    for (unsigned mask = 1; mask < THREADS_X; mask *= 2) x = fmaxf(x, shuffle_xor(x, mask));
    return x;
}
/// The sum over the threads that share a row.
template <int THREADS_X>
__device__ __forceinline__ float row_sum(float x) {
#pragma unroll
    for (unsigned mask = 1; mask < THREADS_X; mask *= 2) x += shuffle_xor(x, mask);
    return x;
}

/// Stores the thread's channels of one row of O: O_regs / l, and 0 where l is 0 since the row sees
/// no key.
/// @param row the query, counted from the block's first
template <class Config, class T>
__device__ __forceinline__ void store_output(const KernelArguments<T>& a, const BlockPosition& at,
                                             int row, int tx,
                                             const float (&O_regs)[Config::CHANNELS], float l) {
    const GlobalPointer<T> o = a.o + (at.batch * a.o_strides.batch + at.head_q * a.o_strides.head +
                                      (at.first_q + row) * a.o_strides.token);
    const float inverse = 1.0f / l;
#pragma unroll
    for (int g = 0; g < Config::CHANNELS / 4; ++g) {
        const int c = 4 * tx + 4 * Config::THREADS_X * g;
        Packed<T, 4> out;
#pragma unroll
        for (int e = 0; e < 4; ++e)
            out[e] = from_float<T>(l == 0.0f ? 0.0f : O_regs[4 * g + e] * inverse);
        if (a.wide && c < a.head_dim) {
            store_packed(o + c, out);
        } else {
#pragma unroll
            for (int e = 0; e < 4; ++e)
                if (c + e < a.head_dim) o[c + e] = out[e];
        }
    }
}

/// Stores the LSE of one row, if it is wanted. One thread of the row calls it.
template <class T>
__device__ __forceinline__ void store_lse(const KernelArguments<T>& a, const BlockPosition& at,
                                          int row, float lse) {
    if (a.lse)
        a.lse[at.batch * a.lse_stride_batch + at.head_q * a.lse_stride_head + at.first_q + row] =
            lse;
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
