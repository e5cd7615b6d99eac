#pragma once
/// @file
/// The register-tiled kernel of chapter 4 with one idea changed: weights are powers of two. Scale
/// and log2 e are folded into the multiply-add that subtracts the maximum.

#include "chapters/04_cuda_tiled/block_tiles.h"
#include "chapters/05_exp2/folded_scale.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// One tile: S, mask (if MASKED), online softmax, P·V. Rows of the thread are ty + THREADS_Y·i, its
/// keys tx + THREADS_X·j, its channels 4·tx + 4·THREADS_X·g + e: neighbouring threads have
/// neighbouring rows, keys and channels, and so meet different banks.
/// @param visible of this tile's keys, how many each of the thread's rows sees; unused if not
/// MASKED
template <class Config, bool MASKED>
__device__ __forceinline__ void exp2_tile_step(const BlockTiles<Config>& tiles, FoldedScale scale,
                                               int ty, int tx, const int (&visible)[Config::ROWS],
                                               float (&m)[Config::ROWS], float (&l)[Config::ROWS],
                                               float (&O_regs)[Config::ROWS][Config::CHANNELS]) {
    constexpr int ROWS = Config::ROWS, KEYS = Config::KEYS, CHANNELS = Config::CHANNELS;
    constexpr int STRIDE = Config::STRIDE, P_STRIDE = Config::P_STRIDE;
    constexpr int TX = Config::THREADS_X, TY = Config::THREADS_Y;
    const auto& [Q_smem, K_smem, V_smem, P_smem] = tiles;

    // [scores]
    // S = ±Q·Kᵀ, unscaled: four channels at a time, KEYS + ROWS loads for 4·KEYS·ROWS multiply-adds
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
        // Nothing visible yet: subtract 0, so that exp2(−∞ − m) is 0 and not NaN.
        const float base = m_new == minus_infinity() ? 0.0f : m_new;
        const float row_scale = scale.for_maximum(base);
        // Not a multiply-add: it must be 1 where the maximum stays, and c·m − shift is not quite 0.
        const float correction = fast_exp2((m[i] - base) * row_scale);
        const float shift = base * row_scale;
        float sum = 0.0f;  // of this thread's keys; the threads' sums meet after the last tile
#pragma unroll
        for (int j = 0; j < KEYS; ++j) {
            const float p = fast_exp2(fmaf(S_regs[i][j], row_scale, -shift));
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

// [kernel]
/// Grid: query blocks × heads × batch in x. Block: THREADS. Shared memory: SHARED_BYTES.
template <class Config, class T>
__global__ void __launch_bounds__(Config::THREADS) exp2_attention(const KernelArguments<T> a) {
    constexpr int BLOCK_M = Config::BLOCK_M, BLOCK_N = Config::BLOCK_N, ROWS = Config::ROWS;
    constexpr int TX = Config::THREADS_X, TY = Config::THREADS_Y;

    const FoldedScale scale(a.scale);
    const BlockTiles<Config> tiles;
    const BlockPosition at(a, blockIdx.x, BLOCK_M);
    const int tx = static_cast<int>(threadIdx.x) % TX, ty = static_cast<int>(threadIdx.x) / TX;
    const int rows = min(BLOCK_M, a.len_q - at.first_q);

    tiles.load_queries(a, at, scale.sign);
    float O_regs[ROWS][Config::CHANNELS] = {};
    float m[ROWS], l[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) m[i] = minus_infinity(), l[i] = 0.0f;

    const auto load_keys = [&](int first_kv) {
        __syncthreads();  // nobody reads the last K and V any more (and all have written Q, first)
        tiles.load_keys(a, at, first_kv);
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
        exp2_tile_step<Config, false>(tiles, scale, ty, tx, visible, m, l, O_regs);
    }
    for (; first_kv < block_keys; first_kv += BLOCK_N) {
        load_keys(first_kv);
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
            visible[i] = a.visible_keys(min(at.first_q + ty + TY * i, a.len_q - 1)) - first_kv;
        exp2_tile_step<Config, true>(tiles, scale, ty, tx, visible, m, l, O_regs);
    }

#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        l[i] = row_sum<TX>(l[i]);
        const int row = ty + TY * i;
        if (row >= rows) continue;
        store_output<Config>(a, at, row, tx, O_regs[i], l[i]);
        if (tx == 0)  // one thread of the row; no visible key gives −∞
            store_lse(
                a, at, row,
                l[i] == 0.0f ? minus_infinity() : (m[i] * scale.scale_log2 + log2f(l[i])) * LN_2);
    }
}
// [kernel]

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
