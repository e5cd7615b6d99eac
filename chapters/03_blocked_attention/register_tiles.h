#pragma once
/// @file
/// The arithmetic of the fast attention: one block of queries against one block of keys, in vector
/// registers. Matrices stand transposed, queries fastest: the lanes of a register are LANES
/// neighbouring queries, and ROW_VECTORS registers hold the whole block.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "chapters/03_blocked_attention/simd.h"

namespace fa::register_tiles {

using simd::Floats;
using simd::Ints;
using simd::LANES;

// Tuning constants: speed only, never correctness.
// ROW_VECTORS × COLUMNS accumulators plus ROW_VECTORS operands plus a broadcast fill the registers.
// With 24 (or 12) independent sums the two multiply-add units never wait for their latency of 4.
inline constexpr int ROW_VECTORS = simd::REGISTERS == 32 ? 4 : 2;
inline constexpr int COLUMNS = 6;
inline constexpr int BLOCK_Q = ROW_VECTORS * LANES;
// S of one block (BLOCK_KV × BLOCK_Q floats) stays in the L2 cache at worst, and the softmax state
// and Oᵀ are visited once in so many keys. Between 96 and 256 the speed differs by 2 %.
inline constexpr int BLOCK_KV = 192;

inline constexpr float MINUS_INFINITY = -std::numeric_limits<float>::infinity();

/// The compiler keeps an array in registers only if every index is a constant before it looks.
#define FA_UNROLL _Pragma("GCC unroll 8")
/// … and only if the functions between are gone by then.
#define FA_INLINE [[gnu::always_inline]] inline

/// One row of a [column][query] matrix: a value for each query of the block.
using Rows = Floats[ROW_VECTORS];

/// Rows of K or V of one block as fp32.
struct Fp32Rows {
    const float* data;
    std::int64_t stride;
    /// The first element of row `j`.
    const float* row(std::int64_t j) const { return data + j * stride; }
    /// The rows from `j` on.
    Fp32Rows from(std::int64_t j) const { return {row(j), stride}; }
};

/// What the queries of a block see of a block of keys. Under the causal mask each query sees one
/// key more than the query before it. So all queries see the first `all` keys; of the rest, vector
/// r sees the first seen[r], the last few of them not with all of its lanes, and the vectors after
/// r see those with all.
struct Visibility {
    std::int64_t all;
    std::int64_t seen[ROW_VECTORS];
    Ints limit[ROW_VECTORS];  ///< lane by lane: key j is seen iff j < limit. Unset if all see all

    /// The first key that vector `r` sees and the vectors before it do not.
    std::int64_t first_key(int r) const { return r == 0 ? all : seen[r - 1]; }
};

/// Calls `body.template operator()<COUNT>(first)` for groups of COLUMNS columns and one last group
/// of the rest, so that every column count runs at full register use.
template <class Body>
void in_groups(std::int64_t from, std::int64_t to, Body&& body) {
    std::int64_t first = from;
    for (; first + COLUMNS <= to; first += COLUMNS) body.template operator()<COLUMNS>(first);
    switch (to - first) {
        case 1: body.template operator()<1>(first); break;
        case 2: body.template operator()<2>(first); break;
        case 3: body.template operator()<3>(first); break;
        case 4: body.template operator()<4>(first); break;
        case 5: body.template operator()<5>(first); break;
        default: break;
    }
}
static_assert(COLUMNS == 6, "in_groups() lists the remainders below COLUMNS");

// [scores]
/// Sᵀ for COUNT keys: s_t[key][query] = Σ_c q_t[c][query] · k[key][c], and the running row maximum.
/// Every key element is broadcast, so K is read as it lies in memory. Vectors below FIRST see none
/// of these keys. MASKED: in vector FIRST, key j has −∞ for the lanes with limit[lane] <= j,
/// whatever K holds there.
template <int COUNT, int FIRST, bool MASKED>
void scores_of_keys(const float* q_t, Fp32Rows k, std::int64_t dim, Ints limit, float* s_t,
                    Rows& maximum) {
    Rows sum[COUNT] = {};
    for (std::int64_t c = 0; c < dim; ++c) {
        Rows q;
        FA_UNROLL
        for (int r = FIRST; r < ROW_VECTORS; ++r) q[r] = simd::load(q_t + c * BLOCK_Q + r * LANES);
        FA_UNROLL
        for (int j = 0; j < COUNT; ++j) {
            const Floats key = simd::broadcast(k.row(j)[c]);
            FA_UNROLL
            for (int r = FIRST; r < ROW_VECTORS; ++r) sum[j][r] += q[r] * key;
        }
    }
    FA_UNROLL
    for (int j = 0; j < COUNT; ++j) {
        if (MASKED) sum[j][FIRST] = limit > j ? sum[j][FIRST] : simd::broadcast(MINUS_INFINITY);
        FA_UNROLL
        for (int r = FIRST; r < ROW_VECTORS; ++r) {
            simd::store(s_t + j * BLOCK_Q + r * LANES, sum[j][r]);
            maximum[r] = simd::larger(sum[j][r], maximum[r]);
        }
    }
}
// [scores]

/// S of the keys that not all queries see, from vector FIRST on.
template <int FIRST>
void scores_on_diagonal(const float* q_t, Fp32Rows k, std::int64_t dim, const Visibility& visible,
                        float* s_t, Rows& maximum) {
    in_groups(visible.first_key(FIRST), visible.seen[FIRST], [&]<int COUNT>(std::int64_t j) {
        scores_of_keys<COUNT, FIRST, true>(q_t, k.from(j), dim,
                                           visible.limit[FIRST] - static_cast<std::int32_t>(j),
                                           s_t + j * BLOCK_Q, maximum);
    });
    if constexpr (FIRST + 1 < ROW_VECTORS)
        scores_on_diagonal<FIRST + 1>(q_t, k, dim, visible, s_t, maximum);
}

/// S of a block of keys, and the row maxima.
inline void scores(const float* q_t, Fp32Rows k, std::int64_t dim, const Visibility& visible,
                   float* s_t, Rows& maximum) {
    in_groups(0, visible.all, [&]<int COUNT>(std::int64_t j) {
        scores_of_keys<COUNT, 0, false>(q_t, k.from(j), dim, Ints{}, s_t + j * BLOCK_Q, maximum);
    });
    scores_on_diagonal<0>(q_t, k, dim, visible, s_t, maximum);
}

/// The online softmax state of one query block.
struct State {
    Rows m;  ///< running maximum
    Rows l;  ///< running sum of the weights
};

// [weights]
/// How scores become softmax weights: exp(s − m), the scale already in Q. The fast attention takes
/// it as a parameter, since chapter 5 has another way.
class ExpWeights {
  public:
    explicit ExpWeights(float scale) : scale_(scale) {}

    /// What Q is multiplied by when it is loaded.
    float query_factor() const { return scale_; }

    /// What is subtracted from the scores of a row. No finite score yet: 0, not −∞, so that
    /// exp(−∞ − m) is 0 and not NaN.
    struct Shift {
        Floats m;
    };
    /// What is subtracted from the scores of queries whose maximum this is: 0 in place of −∞.
    Shift shift(Floats maximum) const { return {maximum == MINUS_INFINITY ? Floats{} : maximum}; }
    /// exp(score − maximum).
    Floats weight(Floats score, Shift shift) const {
        return simd::exp_nonpositive(score - shift.m);
    }
    /// By how much everything summed before must shrink.
    Floats correction(Floats old_maximum, Shift shift) const { return weight(old_maximum, shift); }

    /// log Σ exp(score) of a row, from its maximum and the sum of its weights.
    float lse(float m, float l) const { return m + std::log(l); }

  private:
    float scale_;
};
// [weights]

// [softmax]
/// Turns the block's Sᵀ into Pᵀ in place and moves the state on.
/// `correction` becomes the factor by which everything summed before must shrink.
template <class Weights>
void softmax_block(const Weights& weights, float* s_t, const Visibility& visible,
                   const Rows& block_maximum, State& state, Rows& correction) {
    FA_UNROLL
    for (int r = 0; r < ROW_VECTORS; ++r) {
        const Floats m_new = simd::larger(block_maximum[r], state.m[r]);
        const auto shift = weights.shift(m_new);
        correction[r] = weights.correction(state.m[r], shift);
        Floats sum = {};
        for (std::int64_t j = 0; j < visible.seen[r]; ++j) {
            float* s = s_t + j * BLOCK_Q + r * LANES;
            const Floats p = weights.weight(simd::load(s), shift);
            simd::store(s, p);
            sum += p;
        }
        state.l[r] = state.l[r] * correction[r] + sum;
        state.m[r] = m_new;
    }
}
// [softmax]

// [weighted-sum]
/// Adds P·V of the keys that not all queries see, from vector FIRST on. V of a masked key must not
/// even be multiplied by P = 0: 0·NaN is NaN.
template <int FIRST, int COUNT>
FA_INLINE void add_diagonal(const float* p_t, Fp32Rows v, const Visibility& visible,
                            Rows (&sum)[COUNT]) {
    for (std::int64_t j = visible.first_key(FIRST); j < visible.seen[FIRST]; ++j) {
        const Ints sees = visible.limit[FIRST] > static_cast<std::int32_t>(j);
        FA_UNROLL
        for (int c = 0; c < COUNT; ++c) {
            const Floats value = simd::broadcast(v.row(j)[c]);
            const Floats p = simd::load(p_t + j * BLOCK_Q + FIRST * LANES);
            sum[c][FIRST] = sees ? sum[c][FIRST] + p * value : sum[c][FIRST];
            FA_UNROLL
            for (int r = FIRST + 1; r < ROW_VECTORS; ++r)
                sum[c][r] += simd::load(p_t + j * BLOCK_Q + r * LANES) * value;
        }
    }
    if constexpr (FIRST + 1 < ROW_VECTORS) add_diagonal<FIRST + 1>(p_t, v, visible, sum);
}

/// Oᵀ for COUNT channels: o_t[c][query] = o_t[c][query]·correction[query] + Σ_j
/// p_t[j][query]·v[j][c].
template <int COUNT>
void weighted_sum_of_channels(const float* p_t, Fp32Rows v, const Visibility& visible,
                              const Rows& correction, float* o_t) {
    Rows sum[COUNT];
    FA_UNROLL
    for (int c = 0; c < COUNT; ++c) FA_UNROLL
    for (int r = 0; r < ROW_VECTORS; ++r)
        sum[c][r] = simd::load(o_t + c * BLOCK_Q + r * LANES) * correction[r];
    for (std::int64_t j = 0; j < visible.all; ++j) {
        Rows p;
        FA_UNROLL
        for (int r = 0; r < ROW_VECTORS; ++r) p[r] = simd::load(p_t + j * BLOCK_Q + r * LANES);
        FA_UNROLL
        for (int c = 0; c < COUNT; ++c) {
            const Floats value = simd::broadcast(v.row(j)[c]);
            FA_UNROLL
            for (int r = 0; r < ROW_VECTORS; ++r) sum[c][r] += p[r] * value;
        }
    }
    add_diagonal<0>(p_t, v, visible, sum);
    FA_UNROLL
    for (int c = 0; c < COUNT; ++c) FA_UNROLL
    for (int r = 0; r < ROW_VECTORS; ++r) simd::store(o_t + c * BLOCK_Q + r * LANES, sum[c][r]);
}
// [weighted-sum]

/// O of a block of queries, moved on by a block of keys.
inline void weighted_sum(const float* p_t, Fp32Rows v, std::int64_t dim, const Visibility& visible,
                         const Rows& correction, float* o_t) {
    in_groups(0, dim, [&]<int COUNT>(std::int64_t c) {
        weighted_sum_of_channels<COUNT>(p_t, {v.data + c, v.stride}, visible, correction,
                                        o_t + c * BLOCK_Q);
    });
}

#undef FA_UNROLL
#undef FA_INLINE

}  // namespace fa::register_tiles
