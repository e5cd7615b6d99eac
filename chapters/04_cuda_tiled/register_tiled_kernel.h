#pragma once
/// @file
/// The fused kernel with register tiles: a thread computes a small rectangle of S and of O, so that
/// a value read from shared memory is used several times. The idea is that of every fast SGEMM.

#include "chapters/04_cuda_tiled/arguments.h"
#include "chapters/04_cuda_tiled/load_tile.h"

namespace fa::inline FA_KERNEL_NAMESPACE {

/// Sizes of the register-tiled kernel: THREADS_Y × THREADS_X threads; a thread owns ROWS queries
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
    static constexpr std::size_t SHARED_BYTES =
        sizeof(float) * (Q_FLOATS + 2 * KV_FLOATS + BLOCK_M * P_STRIDE);

    static_assert(BLOCK_M % THREADS_Y == 0 && BLOCK_N % THREADS_X == 0);
    static_assert(CHANNELS % 4 == 0 && BLOCK_N % 4 == 0 && HEAD_DIM % 4 == 0);
    static_assert((THREADS_X == 8 || THREADS_X == 16) && THREADS % 32 == 0);
};

/// The threads of one row of the thread grid are neighbours in a warp: a row's maximum or sum is a
/// few shuffles away.
template <int THREADS_X>
__device__ __forceinline__ float row_maximum(float x) {
#pragma unroll
    for (unsigned mask = 1; mask < THREADS_X; mask *= 2) x = fmaxf(x, shuffle_xor(x, mask));
    return x;
}
template <int THREADS_X>
__device__ __forceinline__ float row_sum(float x) {
#pragma unroll
    for (unsigned mask = 1; mask < THREADS_X; mask *= 2) x += shuffle_xor(x, mask);
    return x;
}

/// One tile: S, mask (if MASKED), online softmax, P·V. Rows of the thread are ty + THREADS_Y·i, its
/// keys tx + THREADS_X·j, its channels 4·tx + 4·THREADS_X·g + e: neighbouring threads have
/// neighbouring rows, keys and channels, and so meet different banks.
/// @param visible of this tile's keys, how many each of the thread's rows sees; unused if not
/// MASKED
template <class Config, bool MASKED>
__device__ __forceinline__ void register_tile_step(
    SharedPointer<float> Q_smem, SharedPointer<float> K_smem, SharedPointer<float> V_smem,
    SharedPointer<float> P_smem, int ty, int tx, const int (&visible)[Config::ROWS],
    float (&m)[Config::ROWS], float (&l)[Config::ROWS],
    float (&O_regs)[Config::ROWS][Config::CHANNELS]) {
    constexpr int ROWS = Config::ROWS, KEYS = Config::KEYS, CHANNELS = Config::CHANNELS;
    constexpr int STRIDE = Config::STRIDE, P_STRIDE = Config::P_STRIDE;
    constexpr int TX = Config::THREADS_X, TY = Config::THREADS_Y;

    // [scores]
    // S = scale·Q·Kᵀ: four channels at a time, KEYS + ROWS loads for 4·KEYS·ROWS multiply-adds
    float S_regs[ROWS][KEYS] = {};
#pragma unroll 2
    for (int c = 0; c < Config::HEAD_DIM; c += 4) {
        Packed<float, 4> k[KEYS];
#pragma unroll
        for (int j = 0; j < KEYS; ++j) k[j] = load_packed<4>(K_smem + ((tx + TX * j) * STRIDE + c));
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const Packed<float, 4> q = load_packed<4>(Q_smem + ((ty + TY * i) * STRIDE + c));
#pragma unroll
            for (int j = 0; j < KEYS; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) S_regs[i][j] += q[e] * k[j][e];
        }
    }
    // [scores]

    // [softmax]
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        float m_new = minus_infinity();
#pragma unroll
        for (int j = 0; j < KEYS; ++j) {
            if (MASKED && tx + TX * j >= visible[i]) S_regs[i][j] = minus_infinity();
            m_new = fmaxf(m_new, S_regs[i][j]);
        }
        m_new = fmaxf(m[i], row_maximum<TX>(m_new));
        // Nothing visible yet: subtract 0, so that exp(−∞ − m) is 0 and not NaN.
        const float shift = m_new == minus_infinity() ? 0.0f : m_new;
        const float correction = fast_exp(m[i] - shift);
        float sum = 0.0f;  // of this thread's keys; the threads' sums meet after the last tile
#pragma unroll
        for (int j = 0; j < KEYS; ++j) {
            const float p = fast_exp(S_regs[i][j] - shift);
            P_smem[(ty + TY * i) * P_STRIDE + tx + TX * j] = p;
            sum += p;
        }
        l[i] = l[i] * correction + sum;
        m[i] = m_new;
#pragma unroll
        for (int c = 0; c < CHANNELS; ++c) O_regs[i][c] *= correction;
    }
    warp_barrier();  // a row of P is written and read by the same warp
    // [softmax]

    // [weighted-sum]
    // O += P·V: four keys at a time
#pragma unroll 2
    for (int n = 0; n < Config::BLOCK_N; n += 4) {
        Packed<float, 4> p[ROWS];
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
            p[i] = load_packed<4>(P_smem + ((ty + TY * i) * P_STRIDE + n));
#pragma unroll
        for (int e = 0; e < 4; ++e)
#pragma unroll
            for (int g = 0; g < CHANNELS / 4; ++g) {
                const Packed<float, 4> v =
                    load_packed<4>(V_smem + ((n + e) * STRIDE + 4 * tx + 4 * TX * g));
#pragma unroll
                for (int i = 0; i < ROWS; ++i)
                    // A masked key is left out, not multiplied by 0: its V may hold NaN.
                    if (!MASKED || n + e < visible[i])
#pragma unroll
                        for (int f = 0; f < 4; ++f) O_regs[i][4 * g + f] += p[i][e] * v[f];
            }
    }
    warp_barrier();  // P is read before the next tile writes it
    // [weighted-sum]
}

/// Grid: query blocks × heads × batch in x. Block: THREADS. Shared memory: SHARED_BYTES.
template <class Config, class T>
__global__ void __launch_bounds__(Config::THREADS)
    register_tiled_attention(const KernelArguments<T> a) {
    constexpr int HEAD_DIM = Config::HEAD_DIM, BLOCK_M = Config::BLOCK_M, BLOCK_N = Config::BLOCK_N;
    constexpr int STRIDE = Config::STRIDE, THREADS = Config::THREADS, ROWS = Config::ROWS;
    constexpr int TX = Config::THREADS_X, TY = Config::THREADS_Y, CHANNELS = Config::CHANNELS;

    const SharedPointer<float> Q_smem = shared_array<float>(0, Config::Q_FLOATS);
    const SharedPointer<float> K_smem =
        shared_array<float>(sizeof(float) * Config::Q_FLOATS, Config::KV_FLOATS);
    const SharedPointer<float> V_smem = shared_array<float>(
        sizeof(float) * (Config::Q_FLOATS + Config::KV_FLOATS), Config::KV_FLOATS);
    const SharedPointer<float> P_smem = shared_array<float>(
        sizeof(float) * (Config::Q_FLOATS + 2 * Config::KV_FLOATS), BLOCK_M * Config::P_STRIDE);

    const BlockPosition at(a, blockIdx.x, BLOCK_M);
    const int tx = static_cast<int>(threadIdx.x) % TX, ty = static_cast<int>(threadIdx.x) / TX;
    const int rows = min(BLOCK_M, a.len_q - at.first_q);

    load_tile<BLOCK_M, HEAD_DIM, STRIDE, THREADS, T>(
        a.q + (at.batch * a.q_strides.batch + at.head_q * a.q_strides.head +
               at.first_q * a.q_strides.token),
        a.q_strides.token, rows, a.head_dim, a.wide, a.scale, Q_smem);

    float O_regs[ROWS][CHANNELS] = {};
    float m[ROWS], l[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) m[i] = minus_infinity(), l[i] = 0.0f;

    const auto load_keys = [&](int first_kv) {
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
    };

    // Tiles that every query of the block sees wholly come first and need no mask; the rest, up to
    // the last key that the last query sees, are on the diagonal or at the end.
    const int unmasked = a.visible_keys(at.first_q) / BLOCK_N * BLOCK_N;
    const int block_keys = a.visible_keys(at.first_q + rows - 1);
    int visible[ROWS] = {};
    int first_kv = 0;
    for (; first_kv < unmasked; first_kv += BLOCK_N) {
        load_keys(first_kv);
        register_tile_step<Config, false>(Q_smem, K_smem, V_smem, P_smem, ty, tx, visible, m, l,
                                          O_regs);
    }
    for (; first_kv < block_keys; first_kv += BLOCK_N) {
        load_keys(first_kv);
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
            visible[i] = a.visible_keys(min(at.first_q + ty + TY * i, a.len_q - 1)) - first_kv;
        register_tile_step<Config, true>(Q_smem, K_smem, V_smem, P_smem, ty, tx, visible, m, l,
                                         O_regs);
    }

#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        l[i] = row_sum<TX>(l[i]);
        const int row = ty + TY * i;
        if (row >= rows) continue;
        const GlobalPointer<T> o =
            a.o + (at.batch * a.o_strides.batch + at.head_q * a.o_strides.head +
                   (at.first_q + row) * a.o_strides.token);
        const bool empty = l[i] == 0.0f;  // no visible key: O = 0
        const float inverse = 1.0f / l[i];
#pragma unroll
        for (int g = 0; g < CHANNELS / 4; ++g) {
            const int c = 4 * tx + 4 * TX * g;
            Packed<T, 4> out;
#pragma unroll
            for (int e = 0; e < 4; ++e)
                out[e] = from_float<T>(empty ? 0.0f : O_regs[i][4 * g + e] * inverse);
            if (a.wide && c < a.head_dim) {
                store_packed(o + c, out);
            } else {
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    if (c + e < a.head_dim) o[c + e] = out[e];
            }
        }
        if (a.lse && tx == 0)
            a.lse[at.batch * a.lse_stride_batch + at.head_q * a.lse_stride_head + at.first_q +
                  row] = empty ? minus_infinity() : m[i] + logf(l[i]);
    }
}

}  // namespace fa::inline FA_KERNEL_NAMESPACE
