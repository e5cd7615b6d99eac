#pragma once
/// @file
/// The last step: 16 or 32 rows to a warp, tiles by head dimension and length, and a switch for
/// each idea of the chapter, so that it can be taken out again and its worth be measured.

#include "chapters/08_tensor_cores/fragments.h"
#include "chapters/08_tensor_cores/lazy_rows.h"
#include "chapters/08_tensor_cores/masked_values.h"
#include "chapters/08_tensor_cores/store_rows.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

// [switches]
/// What can be taken out of the kernel.
struct Switches {
    bool skip_tiles = true;     ///< tiles that no query of the block sees are left out
    bool masks_apart = true;    ///< tiles that all of them see have a loop without mask
    bool own_diagonal = true;   ///< a warp leaves out the tiles that none of its own queries sees
    bool sections = true;       ///< longest blocks first, over the heads of a section
    bool swizzled = true;       ///< chunks of a row are exchanged so that banks do not conflict
    bool lazy = true;           ///< O is rescaled only if a maximum grows by more than 8 (base 2)
    bool powers_of_two = true;  ///< exp2 with a folded scale; else exp of scaled scores
    int stages = 2;             ///< tiles of K and V in shared memory; 1: nothing is prefetched
};
// [switches]

// [config]
/// Sizes of the kernel.
/// @tparam CHUNKED false for tensors whose rows cannot be moved 16 bytes at a time
template <int HEAD_DIM_, int ROW_TILES_, int BLOCK_N_, bool Q_IN_REGISTERS_, int BLOCKS_PER_SM_,
          bool CHUNKED_ = true, Switches SWITCHES_ = Switches{}>
struct TensorCoreConfig {
    static constexpr int HEAD_DIM = HEAD_DIM_, BLOCK_N = BLOCK_N_;
    static constexpr int WARPS = 4, THREADS = 32 * WARPS;
    static constexpr int ROW_TILES = ROW_TILES_;  ///< of 16 rows, to a warp
    static constexpr int WARP_ROWS = 16 * ROW_TILES, BLOCK_M = WARP_ROWS * WARPS;
    static constexpr int KEY_TILES = BLOCK_N / 8, COLUMN_TILES = HEAD_DIM / 8;
    static constexpr int K_STEPS = HEAD_DIM / 16;  ///< products over 16 channels each
    static constexpr bool Q_IN_REGISTERS = Q_IN_REGISTERS_, CHUNKED = CHUNKED_;
    static constexpr int BLOCKS_PER_SM = BLOCKS_PER_SM_;
    static constexpr bool SKIP_TILES = SWITCHES_.skip_tiles, MASKS_APART = SWITCHES_.masks_apart;
    static constexpr bool OWN_DIAGONAL = SWITCHES_.own_diagonal, SECTIONS = SWITCHES_.sections;
    static constexpr bool LAZY = SWITCHES_.lazy, POWERS_OF_TWO = SWITCHES_.powers_of_two;
    static constexpr int STAGES = SWITCHES_.stages;
    using Layout = TileLayout<HEAD_DIM, SWITCHES_.swizzled>;
    using QCopy = TileCopy<BLOCK_M, Layout, THREADS>;
    using KVCopy = TileCopy<BLOCK_N, Layout, THREADS>;
    static constexpr std::uint32_t Q_BYTES = BLOCK_M * Layout::ROW_BYTES;
    static constexpr std::uint32_t KV_BYTES = BLOCK_N * Layout::ROW_BYTES;
    static constexpr std::size_t SHARED_BYTES = Q_BYTES + 2 * STAGES * KV_BYTES;
    static_assert(BLOCK_N % 16 == 0 && STAGES >= 1 && STAGES <= 3);
};
// [config]

/// What a warp holds in registers, and what it does with a tile.
template <class Config, class T>
struct Warp {
    static constexpr int ROW_TILES = Config::ROW_TILES, KEY_TILES = Config::KEY_TILES;
    static constexpr int COLUMN_TILES = Config::COLUMN_TILES, K_STEPS = Config::K_STEPS;
    static constexpr bool Q_IN_REGISTERS = Config::Q_IN_REGISTERS;
    using Layout = typename Config::Layout;
    using Scores = float[ROW_TILES][KEY_TILES][4];

    Lane lane;
    LazyRows<ROW_TILES, Config::LAZY, Config::POWERS_OF_TWO> reference;
    float O[ROW_TILES][COLUMN_TILES][4] = {};
    std::uint32_t Q_regs[Q_IN_REGISTERS ? K_STEPS : 1][ROW_TILES][4];
    SharedAddress q;     ///< of this lane's row of the warp's Q
    std::uint32_t k, v;  ///< of this lane's row, in a tile of K, of V

    __device__ __forceinline__ Warp(FoldedScale folded, SharedAddress Q_smem)
        : reference(folded),
          q(Q_smem + a_offset<Layout>(lane, lane.warp * Config::WARP_ROWS)),
          k(k_offset<Layout>(lane, 0)),
          v(v_offset<Layout>(lane, 0)) {}

    /// The lane's first row in a tile of 16, counted from the block's first.
    __device__ __forceinline__ int row(int i) const {
        return lane.warp * Config::WARP_ROWS + 16 * i + lane.group;
    }

    __device__ __forceinline__ void load_q(int step, std::uint32_t (&r)[ROW_TILES][4]) const {
#pragma unroll
        for (int i = 0; i < ROW_TILES; ++i)
            load_matrices(r[i], Layout::further(q, 2 * step) +
                                    static_cast<std::uint32_t>(16 * i * Layout::ROW_BYTES));
    }

    // [scores]
    /// S = Q·Kᵀ. Each piece of K that is read serves all rows of the warp.
    __device__ __forceinline__ void scores(Scores& S, SharedAddress K_smem) const {
#pragma unroll
        for (int step = 0; step < K_STEPS; ++step) {
            std::uint32_t fresh[ROW_TILES][4];
            if constexpr (!Q_IN_REGISTERS) load_q(step, fresh);
            const auto& Q = Q_IN_REGISTERS ? Q_regs[Q_IN_REGISTERS ? step : 0] : fresh;
            const SharedAddress from = Layout::further(K_smem + k, 2 * step);
#pragma unroll
            for (int j = 0; j < KEY_TILES / 2; ++j) {
                std::uint32_t K[4];
                load_matrices(K, from + static_cast<std::uint32_t>(16 * j * Layout::ROW_BYTES));
#pragma unroll
                for (int i = 0; i < ROW_TILES; ++i) {
                    multiply_add<T>(S[i][2 * j], Q[i], K[0], K[1]);
                    multiply_add<T>(S[i][2 * j + 1], Q[i], K[2], K[3]);
                }
            }
        }
    }
    // [scores]

    // [softmax-and-sum]
    /// P = exp2(c·S − c·m), 16 keys at a time, and O += P·V with them: the exponentials of the next
    /// keys run on one unit while the products of these run on another.
    __device__ __forceinline__ void weighted_sum(Scores& S, SharedAddress V_smem) {
        float shift[ROW_TILES][2];
        reference.shifts(S, shift);
#pragma unroll
        for (int step = 0; step < KEY_TILES / 2; ++step) {
            std::uint32_t P[ROW_TILES][4];
#pragma unroll
            for (int i = 0; i < ROW_TILES; ++i) {
#pragma unroll
                for (int j = 2 * step; j < 2 * step + 2; ++j)
                    reference.weigh(S[i][j], shift[i], reference.l[i]);
                pack_weights<T>(P[i], S[i][2 * step], S[i][2 * step + 1]);
            }
            const std::uint32_t from =
                V_smem + v + static_cast<std::uint32_t>(16 * step * Layout::ROW_BYTES);
#pragma unroll
            for (int j = 0; j < COLUMN_TILES / 2; ++j) {
                std::uint32_t V[4];
                load_matrices_transposed(V, Layout::further(from, 2 * j));
#pragma unroll
                for (int i = 0; i < ROW_TILES; ++i) {
                    multiply_add<T>(O[i][2 * j], P[i], V[0], V[1]);
                    multiply_add<T>(O[i][2 * j + 1], P[i], V[2], V[3]);
                }
            }
        }
    }
    // [softmax-and-sum]
};

// [kernel]
/// Grid: query blocks × heads × batch in x. Block: THREADS. Shared memory: SHARED_BYTES.
template <class Config, class T>
__global__ void __launch_bounds__(Config::THREADS, Config::BLOCKS_PER_SM)
    tensor_core_attention(const Arguments<T> a) {
    constexpr int BLOCK_M = Config::BLOCK_M, BLOCK_N = Config::BLOCK_N, STAGES = Config::STAGES;
    constexpr int ROW_TILES = Config::ROW_TILES;
    constexpr int AHEAD = STAGES > 1 ? STAGES - 1 : 1;  // tiles on their way before the loop
    constexpr int PENDING = AHEAD - 1;                  // groups that need not be here for a tile
    constexpr std::uint32_t KV_BYTES = Config::KV_BYTES;
    using Layout = typename Config::Layout;

    const SharedAddress Q_smem = shared_address(0), K_smem = Q_smem + Config::Q_BYTES;
    const SharedAddress V_smem = K_smem + STAGES * KV_BYTES;
    const auto at = [&] {
        if constexpr (Config::SECTIONS)
            return SectionPosition(a, blockIdx.x, BLOCK_M);
        else
            return BlockPosition(a, blockIdx.x, BLOCK_M);
    }();
    const Sources<T> from(a, at);
    const FoldedScale scale(a.scale);
    Warp<Config, T> warp(scale, Q_smem);
    const typename Config::QCopy q_copy;
    const typename Config::KVCopy kv_copy;
    const int rows = min(BLOCK_M, a.len_q - at.first_q);

    // Tiles from the last one that is needed to the first; those with a mask come first.
    const int keys = Config::SKIP_TILES ? a.visible_keys(at.first_q + rows - 1) : a.len_kv;
    const int tiles = (keys + BLOCK_N - 1) / BLOCK_N;
    const int first_masked = Config::MASKS_APART ? a.visible_keys(at.first_q) / BLOCK_N : 0;
    // Beyond this key none of this warp's queries sees any.
    const int warp_keys =
        Config::OWN_DIAGONAL
            ? a.visible_keys(min(at.first_q + (warp.lane.warp + 1) * Config::WARP_ROWS, a.len_q) -
                             1)
            : keys;

    // Of all tiles only the last can end early.
    const auto copy_tile = [&](auto whole, int n, std::uint32_t stage) {
        const auto copy = [&](SharedAddress to, GlobalPointer<const T> source,
                              std::int64_t stride) {
            const GlobalPointer<const T> first = source + n * BLOCK_N * stride;
            const int there = a.len_kv - n * BLOCK_N;
            if constexpr (Config::CHUNKED)
                kv_copy.template copy<decltype(whole)::value, T>(to + stage, first, stride, there,
                                                                 a.head_dim);
            else
                kv_copy.template load<T>(to + stage, first, stride, there, a.head_dim, false);
        };
        copy(K_smem, from.k, a.k_strides.token);
        copy(V_smem, from.v, a.v_strides.token);
    };

    if constexpr (Config::CHUNKED)
        q_copy.template copy<false, T>(Q_smem, from.q, a.q_strides.token, rows, a.head_dim);
    else
        q_copy.template load<T>(Q_smem, from.q, a.q_strides.token, rows, a.head_dim, false);
#pragma unroll
    for (int ahead = 0; ahead < AHEAD; ++ahead) {
        if (tiles - 1 - ahead >= 0)
            copy_tile(std::false_type{}, tiles - 1 - ahead, ahead * KV_BYTES);
        commit_copies();
    }
    wait_copies<PENDING>();
    if (scale.sign != 1.0f) q_copy.template multiply<T>(Q_smem, scale.sign);
    __syncthreads();
    if constexpr (Config::Q_IN_REGISTERS)
#pragma unroll
        for (int step = 0; step < Config::K_STEPS; ++step) warp.load_q(step, warp.Q_regs[step]);

    // [loop]
    std::uint32_t stage = 0;  // where this tile lies, in bytes from the first
    const auto tile = [&](auto masked, int n) {
        constexpr bool MASKED = decltype(masked)::value;
        if constexpr (STAGES == 1) {
            if (n != tiles - 1) {
                copy_tile(std::true_type{}, n, 0);
                commit_copies();
                wait_copies<0>();
                __syncthreads();
            }
        } else {
            // Into the stage that was read last, before the barrier.
            const std::uint32_t free = stage == 0 ? (STAGES - 1) * KV_BYTES : stage - KV_BYTES;
            if (n >= STAGES - 1) copy_tile(std::true_type{}, n - (STAGES - 1), free);
            commit_copies();  // also if there was nothing to copy: groups are counted
        }
        int visible[ROW_TILES][2];
        if constexpr (MASKED) {
#pragma unroll
            for (int i = 0; i < ROW_TILES; ++i)
                visible_from(a, at.first_q + warp.row(i), n * BLOCK_N, visible[i]);
            set_masked_values_aside<T, typename Config::KVCopy, Layout, BLOCK_N>(
                V_smem + stage, kv_copy, warp.lane, visible, warp.O);
        }
        if (!MASKED || n * BLOCK_N < warp_keys) {
            typename Warp<Config, T>::Scores S = {};
            warp.scores(S, K_smem + stage);
            if constexpr (MASKED)
#pragma unroll
                for (int i = 0; i < ROW_TILES; ++i) mask_scores(S[i], warp.lane, visible[i]);
            warp.reference.follow_maximum(S, warp.O);
            warp.weighted_sum(S, V_smem + stage);
        }
        wait_copies<PENDING>();
        __syncthreads();  // the next tile is here, and this one is no longer read
        if constexpr (STAGES > 1) stage = stage == (STAGES - 1) * KV_BYTES ? 0 : stage + KV_BYTES;
    };
    int n = tiles - 1;
    for (; n >= first_masked; --n) tile(std::true_type{}, n);
    for (; n >= 0; --n) tile(std::false_type{}, n);
    // [loop]

    warp_barrier();  // where there is no tile at all, nothing else separates reading Q from writing
                     // O
#pragma unroll
    for (int i = 0; i < ROW_TILES; ++i) {
        finish_rows(a, at, warp.lane, warp.row(i), scale, warp.reference.m[i], warp.reference.l[i],
                    warp.O[i]);
        if constexpr (Config::CHUNKED)  // the warp's own rows of Q, which nobody reads any more
            stage_rows<T, Layout>(Q_smem, warp.lane, warp.row(i), warp.O[i]);
        else
            store_from_registers(a, output_of(a, at), warp.lane, warp.row(i), rows, warp.O[i]);
    }
    if constexpr (Config::CHUNKED) {
        warp_barrier();
        store_staged<T, Layout, Config::WARP_ROWS>(a, output_of(a, at), Q_smem, warp.lane,
                                                   warp.lane.warp * Config::WARP_ROWS, rows);
    }
}
// [kernel]

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
