#pragma once
/// @file
/// A warpgroup's work on a tile of 64 queries: what the kernels that differ in who loads, and in
/// who gets which tile, have in common.

#include "chapters/09_hopper/finish_rows.h"
#include "chapters/09_hopper/hopper_config.h"
#include "chapters/09_hopper/products.h"
#include "chapters/09_hopper/trace.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// @tparam Config HopperConfig or ShortConfig
template <class Config, class T>
struct TileWork {
    static constexpr int HEAD_DIM = Config::HEAD_DIM, BLOCK_N = Config::BLOCK_N;
    static constexpr HopperSwitches SWITCHES = Config::SWITCHES;
    static constexpr Rescale RESCALE = Config::RESCALE;
    /// Whether a weighted sum runs beside the softmax of the warpgroup that began it.
    static constexpr bool BESIDE_SOFTMAX =
        SWITCHES.overlap == Overlap::scores || SWITCHES.overlap == Overlap::softmax;

    RowReference<RESCALE> reference;
    float S[Config::KEY_TILES][4], O[Config::COLUMN_TILES][4] = {};
    std::uint32_t P[BLOCK_N / 16][4];

    __device__ __forceinline__ explicit TileWork(FoldedScale scale) : reference(scale) {}

    /// Begins S = Q·Kᵀ.
    __device__ __forceinline__ void begin_scores(Matrix Q, Matrix K) {
        fa::begin_scores<T, HEAD_DIM, BLOCK_N>(S, Q, Config::Q_BOX_BYTES, K);
    }
    /// Begins O += P·V.
    __device__ __forceinline__ void begin_weighted_sum(Matrix V) {
        fa::begin_weighted_sum<T, HEAD_DIM, BLOCK_N>(O, P, V);
    }
    /// Waits for the scores, and for whatever was begun before them.
    template <int BEGUN_SINCE>
    __device__ __forceinline__ void wait_scores() {
        wait_products<BEGUN_SINCE>();
        pin(S);
    }
    __device__ __forceinline__ void wait_weighted_sum() {
        wait_products<0>();
        pin(O);
        pin(P);
    }

    /// All of a tile but its end.
    /// @param blocks      of keys that the whole block of threads is given, or its cluster
    /// @param own         those that the warpgroup's queries need
    /// @param row         the lane's first, counted from the first query of the head
    /// @param ring        stages as they arrive: wait(), release(), keys(), values()
    /// @param turns       of the warpgroups at the tensor cores: wait(), pass()
    /// @param after_first called once, when the first scores have become weights
    template <class Blocks, class Ring, class Turns, class AfterFirst, bool TRACED>
    __device__ __forceinline__ void run(const Arguments<T>& a, const Lane& lane, int row,
                                        const Blocks& blocks, const Blocks& own, Matrix Q,
                                        Ring& ring, Turns& turns, Tracer<TRACED>& trace,
                                        AfterFirst&& after_first) {
        const auto mask = [&](int n) {
            int visible[2];
            visible_from(a, row, n * BLOCK_N, visible);
            mask_scores(S, lane, visible);
        };
        // [step]
        const auto step = [&](auto masked, int n) {
            constexpr bool MASKED = decltype(masked)::value;
            trace.mark(TracePhase::wait_keys);
            ring.wait();
            trace.mark(TracePhase::wait_turn);
            turns.wait();
            trace.mark(TracePhase::products);
            if constexpr (SWITCHES.overlap == Overlap::none) {
                begin_weighted_sum(ring.values());
                wait_weighted_sum();
                begin_scores(Q, ring.keys());
                turns.pass();
                wait_scores<0>();
                ring.release();
            } else if constexpr (SWITCHES.overlap == Overlap::together) {
                begin_weighted_sum(ring.values());
                begin_scores(Q, ring.keys());
                turns.pass();
                wait_scores<0>();
                wait_weighted_sum();  // which is here already, having been begun before
                ring.release();
            } else if constexpr (SWITCHES.overlap == Overlap::scores) {
                begin_scores(Q, ring.keys());
                begin_weighted_sum(ring.values());
                turns.pass();
                wait_scores<1>();
            } else {
                begin_scores(Q, ring.keys());
                wait_scores<0>();
                begin_weighted_sum(ring.values());
                turns.pass();
            }
            trace.mark(TracePhase::softmax);
            if constexpr (MASKED) mask(n);
            if constexpr (MASKED || RESCALE != Rescale::rare) reference.follow(S);
            reference.template weigh<SWITCHES.polynomial_eighths>(S);
            trace.mark(TracePhase::wait_sum);
            if constexpr (BESIDE_SOFTMAX) {
                wait_weighted_sum();
                ring.release();
            }
            trace.mark(TracePhase::correct);
            reference.correct(O);
            pack_all<T, BLOCK_N>(P, S);
            if constexpr (!MASKED && RESCALE == Rescale::rare) reference.watch();
        };
        // [step]
        // [skip]
        int n = blocks.count - 1;
        for (; n >= own.count; --n) {  // for others only
            trace.mark(TracePhase::wait_keys);
            ring.wait();
            warp_barrier();  // all lanes have seen the phase: no product keeps them together here
            ring.release();
            if (n > 0) turns.wait(), turns.pass();  // every warpgroup takes count − 1 turns
        }
        // [skip]
        if (n < 0) {  // nothing to see
            if (blocks.count > 0) {
                ring.wait();
                warp_barrier();
                ring.release();
            }
            return;
        }
        trace.mark(TracePhase::wait_keys);
        ring.wait();
        trace.mark(TracePhase::products);
        begin_scores(Q, ring.keys());
        wait_scores<0>();
        ring.release();
        trace.mark(TracePhase::softmax);
        mask(n);
        reference.follow(S);
        reference.template weigh<SWITCHES.polynomial_eighths>(S);
        reference.correct(O);
        pack_all<T, BLOCK_N>(P, S);
        after_first();
        for (--n; n >= own.first_masked; --n) step(std::true_type{}, n);
        for (; n >= 0; --n) step(std::false_type{}, n);
        trace.mark(TracePhase::wait_keys);
        ring.wait();
        trace.mark(TracePhase::wait_sum);
        begin_weighted_sum(ring.values());
        wait_weighted_sum();
        ring.release();
        reference.correct(O);
    }
};

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
