#include "chapters/03_blocked_attention/fast_attention.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "chapters/03_blocked_attention/simd.h"
#include "common/aligned_buffer.h"

namespace fa {
namespace {

using simd::Floats;
using simd::Ints;
using simd::LANES;

// Tuning constants: speed only, never correctness.
// ROW_VECTORS × COLUMNS accumulators plus ROW_VECTORS operands plus a broadcast fill the registers.
// With 24 (or 12) independent sums the two multiply-add units never wait for their latency of 4.
constexpr int ROW_VECTORS = simd::REGISTERS == 32 ? 4 : 2;
constexpr int COLUMNS = 6;
constexpr int BLOCK_Q = ROW_VECTORS * LANES;
// S of one block (BLOCK_KV × BLOCK_Q floats) shares the L1 cache with Qᵀ.
constexpr int BLOCK_KV = 192;

/// The compiler keeps an array in registers only if every index is a constant before it looks.
#define FA_UNROLL _Pragma("GCC unroll 8")

constexpr float MINUS_INFINITY = -std::numeric_limits<float>::infinity();

/// One register tile's worth of a [column][query] matrix, query fastest.
using Rows = Floats[ROW_VECTORS];

/// The scratch of one thread.
struct Scratch {
    float* q_t;    ///< [head_dim][BLOCK_Q]  scale·Qᵀ
    float* s_t;    ///< [BLOCK_KV][BLOCK_Q]  Sᵀ, then Pᵀ in place
    float* o_t;    ///< [head_dim][BLOCK_Q]  unnormalised Oᵀ
    float* k_f32;  ///< [BLOCK_KV][head_dim] K as fp32, 16-bit inputs only
    float* v_f32;  ///< [BLOCK_KV][head_dim] V as fp32, 16-bit inputs only

    Scratch(Carver& carver, const AttentionProblem& p) {
        const auto d = static_cast<std::size_t>(p.head_dim);
        q_t = carver.carve<float>(d * BLOCK_Q);
        s_t = carver.carve<float>(static_cast<std::size_t>(BLOCK_KV) * BLOCK_Q);
        o_t = carver.carve<float>(d * BLOCK_Q);
        const std::size_t converted = p.dtype == DType::f32 ? 0 : d * BLOCK_KV;
        k_f32 = carver.carve<float>(converted);
        v_f32 = carver.carve<float>(converted);
    }
};

/// Rows of K or V of one block as fp32.
struct Fp32Rows {
    const float* data;
    std::int64_t stride;
    const float* row(std::int64_t j) const { return data + j * stride; }
};

template <class T>
Fp32Rows as_fp32(const T* first_row, std::int64_t stride, std::int64_t rows, std::int64_t dim,
                 float* buffer) {
    if constexpr (std::is_same_v<T, float>) {
        return {first_row, stride};  // read in place: K and V need no packing at all
    } else {
        for (std::int64_t j = 0; j < rows; ++j)
            for (std::int64_t c = 0; c < dim; ++c)
                buffer[j * dim + c] = static_cast<float>(first_row[j * stride + c]);
        return {buffer, dim};
    }
}

// [scores]
/// Sᵀ for COUNT keys: s_t[key][query] = Σ_c q_t[c][query] · k[key][c], and the running row maximum.
/// Every key element is broadcast, so K is read as it lies in memory.
template <int COUNT>
void scores_of_keys(const float* q_t, Fp32Rows k, std::int64_t dim, float* s_t, Rows& maximum) {
    Rows sum[COUNT] = {};
    for (std::int64_t c = 0; c < dim; ++c) {
        Rows q;
        FA_UNROLL for (int r = 0; r < ROW_VECTORS; ++r) q[r] =
            simd::load(q_t + c * BLOCK_Q + r * LANES);
        FA_UNROLL for (int j = 0; j < COUNT; ++j) {
            const Floats key = simd::broadcast(k.row(j)[c]);
            FA_UNROLL for (int r = 0; r < ROW_VECTORS; ++r) sum[j][r] += q[r] * key;
        }
    }
    FA_UNROLL for (int j = 0; j < COUNT; ++j) FA_UNROLL for (int r = 0; r < ROW_VECTORS; ++r) {
        simd::store(s_t + j * BLOCK_Q + r * LANES, sum[j][r]);
        maximum[r] = simd::larger(sum[j][r], maximum[r]);
    }
}
// [scores]

// [weighted-sum]
/// Oᵀ for COUNT channels: o_t[c][query] = o_t[c][query]·correction[query] + Σ_j
/// p_t[j][query]·v[j][c]. Keys 0 … all−1 are visible to every query of the block. Key j of the rest
/// only to queries with visible[query] > j, and V of a masked key must not even be multiplied by P
/// = 0: 0·NaN is NaN.
template <int COUNT>
void weighted_sum_of_channels(const float* p_t, Fp32Rows v, std::int64_t all, std::int64_t keys,
                              const Ints (&visible)[ROW_VECTORS], const Rows& correction,
                              float* o_t) {
    Rows sum[COUNT];
    FA_UNROLL for (int c = 0; c < COUNT; ++c) FA_UNROLL for (int r = 0; r < ROW_VECTORS; ++r)
        sum[c][r] = simd::load(o_t + c * BLOCK_Q + r * LANES) * correction[r];
    for (std::int64_t j = 0; j < all; ++j) {
        Rows p;
        FA_UNROLL for (int r = 0; r < ROW_VECTORS; ++r) p[r] =
            simd::load(p_t + j * BLOCK_Q + r * LANES);
        FA_UNROLL for (int c = 0; c < COUNT; ++c) {
            const Floats value = simd::broadcast(v.row(j)[c]);
            FA_UNROLL for (int r = 0; r < ROW_VECTORS; ++r) sum[c][r] += p[r] * value;
        }
    }
    for (std::int64_t j = all; j < keys; ++j) {
        FA_UNROLL for (int c = 0; c < COUNT; ++c) {
            const Floats value = simd::broadcast(v.row(j)[c]);
            FA_UNROLL for (int r = 0; r < ROW_VECTORS; ++r) {
                const Floats p = simd::load(p_t + j * BLOCK_Q + r * LANES);
                sum[c][r] =
                    visible[r] > static_cast<std::int32_t>(j) ? sum[c][r] + p * value : sum[c][r];
            }
        }
    }
    FA_UNROLL for (int c = 0; c < COUNT; ++c) FA_UNROLL for (int r = 0; r < ROW_VECTORS; ++r)
        simd::store(o_t + c * BLOCK_Q + r * LANES, sum[c][r]);
}
// [weighted-sum]

/// Calls `body.template operator()<COUNT>(first)` for groups of COLUMNS columns and one last group
/// of the rest, so that every column count runs at full register use.
template <class Body>
void in_groups(std::int64_t columns, Body&& body) {
    std::int64_t first = 0;
    for (; first + COLUMNS <= columns; first += COLUMNS) body.template operator()<COLUMNS>(first);
    switch (columns - first) {
        case 1: body.template operator()<1>(first); break;
        case 2: body.template operator()<2>(first); break;
        case 3: body.template operator()<3>(first); break;
        case 4: body.template operator()<4>(first); break;
        case 5: body.template operator()<5>(first); break;
        default: break;
    }
}
static_assert(COLUMNS == 6, "in_groups() lists the remainders below COLUMNS");

/// The online softmax state of one query block.
struct State {
    Rows m;  ///< running maximum
    Rows l;  ///< running sum of exp(s − m)
};

// [softmax]
/// Turns the block's Sᵀ into Pᵀ in place and moves the state on.
/// @return by how much everything summed before must shrink: exp(m_old − m_new)
void softmax_block(float* s_t, std::int64_t keys, const Rows& block_maximum, State& state,
                   Rows& correction) {
    FA_UNROLL for (int r = 0; r < ROW_VECTORS; ++r) {
        const Floats m_new = simd::larger(block_maximum[r], state.m[r]);
        // No finite score yet: subtract 0, not −∞, so that exp(−∞ − m) is 0 and not NaN.
        const Floats shift = m_new == MINUS_INFINITY ? Floats{} : m_new;
        correction[r] = simd::exp_nonpositive(state.m[r] - shift);
        Floats sum = {};
        for (std::int64_t j = 0; j < keys; ++j) {
            float* s = s_t + j * BLOCK_Q + r * LANES;
            const Floats p = simd::exp_nonpositive(simd::load(s) - shift);
            simd::store(s, p);
            sum += p;
        }
        state.l[r] = state.l[r] * correction[r] + sum;
        state.m[r] = m_new;
    }
}
// [softmax]

/// One query block of one head, from its load to its store.
template <class T>
class QueryBlock {
  public:
    QueryBlock(const AttentionProblem& p, const AttentionTensors& t, Scratch& scratch)
        : p_(p), t_(t), scratch_(scratch) {}

    void run(std::int64_t b, std::int64_t h, std::int64_t first_q) {
        const std::int64_t rows = std::min<std::int64_t>(BLOCK_Q, p_.len_q - first_q);
        load_q(b, h, first_q, rows);
        std::fill_n(scratch_.o_t, p_.head_dim * BLOCK_Q, 0.0f);
        State state;
        FA_UNROLL for (int r = 0; r < ROW_VECTORS; ++r) {
            state.m[r] = simd::broadcast(MINUS_INFINITY);
            state.l[r] = Floats{};
        }
        // The keys that the block's last query sees; the first query sees at most BLOCK_Q − 1
        // fewer.
        const std::int64_t keys = p_.visible_keys(first_q + rows - 1);
        const auto k = t_.k.as<T>(), v = t_.v.as<T>();
        for (std::int64_t first = 0; first < keys; first += BLOCK_KV) {
            const std::int64_t count = std::min<std::int64_t>(BLOCK_KV, keys - first);
            step(as_fp32(k.row(b, p_.head_kv(h), first), k.strides.token, count, p_.head_dim,
                         scratch_.k_f32),
                 as_fp32(v.row(b, p_.head_kv(h), first), v.strides.token, count, p_.head_dim,
                         scratch_.v_f32),
                 first_q, first, count, state);
        }
        store_o(b, h, first_q, rows, state);
    }

  private:
    void load_q(std::int64_t b, std::int64_t h, std::int64_t first_q, std::int64_t rows) {
        const auto q = t_.q.as<T>();
        const float scale = p_.effective_scale();
        if (rows < BLOCK_Q) std::fill_n(scratch_.q_t, p_.head_dim * BLOCK_Q, 0.0f);
        for (std::int64_t i = 0; i < rows; ++i) {
            const T* row = q.row(b, h, first_q + i);
            for (std::int64_t c = 0; c < p_.head_dim; ++c)
                scratch_.q_t[c * BLOCK_Q + i] = static_cast<float>(row[c]) * scale;
        }
    }

    // [step]
    /// One block of keys: scores, mask, softmax, weighted sum.
    void step(Fp32Rows k, Fp32Rows v, std::int64_t first_q, std::int64_t first_kv,
              std::int64_t keys, State& state) {
        // Keys of this block that the first query sees, hence all queries see.
        const std::int64_t all =
            std::clamp<std::int64_t>(p_.visible_keys(first_q) - first_kv, 0, keys);
        Rows maximum;
        for (Floats& lanes : maximum) lanes = simd::broadcast(MINUS_INFINITY);
        in_groups(all, [&]<int COUNT>(std::int64_t j) {
            scores_of_keys<COUNT>(scratch_.q_t, {k.row(j), k.stride}, p_.head_dim,
                                  scratch_.s_t + j * BLOCK_Q, maximum);
        });
        // The diagonal: at most BLOCK_Q − 1 keys that some queries see and others do not.
        Ints visible[ROW_VECTORS] = {};
        if (all < keys) {
            in_groups(keys - all, [&]<int COUNT>(std::int64_t j) {
                Rows unused = {};
                scores_of_keys<COUNT>(scratch_.q_t, {k.row(all + j), k.stride}, p_.head_dim,
                                      scratch_.s_t + (all + j) * BLOCK_Q, unused);
            });
            for (int i = 0; i < BLOCK_Q; ++i)
                visible[i / LANES][i % LANES] =
                    static_cast<std::int32_t>(p_.visible_keys(first_q + i) - first_kv);
            mask(all, keys, visible, maximum);
        }
        Rows correction;
        softmax_block(scratch_.s_t, keys, maximum, state, correction);
        in_groups(p_.head_dim, [&]<int COUNT>(std::int64_t c) {
            weighted_sum_of_channels<COUNT>(scratch_.s_t, {v.data + c, v.stride}, all, keys,
                                            visible, correction, scratch_.o_t + c * BLOCK_Q);
        });
    }
    // [step]

    /// Sets the masked scores of the diagonal to −∞, whatever K held there, and extends the
    /// maximum.
    void mask(std::int64_t all, std::int64_t keys, const Ints (&visible)[ROW_VECTORS],
              Rows& maximum) {
        for (std::int64_t j = all; j < keys; ++j) FA_UNROLL for (int r = 0; r < ROW_VECTORS; ++r) {
                float* s = scratch_.s_t + j * BLOCK_Q + r * LANES;
                const Floats masked = visible[r] > static_cast<std::int32_t>(j)
                                          ? simd::load(s)
                                          : simd::broadcast(MINUS_INFINITY);
                simd::store(s, masked);
                maximum[r] = simd::larger(masked, maximum[r]);
            }
    }

    void store_o(std::int64_t b, std::int64_t h, std::int64_t first_q, std::int64_t rows,
                 const State& state) {
        const auto o = t_.o.as<T>();
        for (std::int64_t i = 0; i < rows; ++i) {
            const float m = state.m[i / LANES][i % LANES], l = state.l[i / LANES][i % LANES];
            T* row = o.row(b, h, first_q + i);
            // l is 0 only if no key had any weight: then O is 0. NaN takes the division.
            for (std::int64_t c = 0; c < p_.head_dim; ++c)
                row[c] = static_cast<T>(l == 0.0f ? 0.0f : scratch_.o_t[c * BLOCK_Q + i] / l);
            if (t_.lse.data)
                t_.lse.row(b, h)[first_q + i] = l == 0.0f ? MINUS_INFINITY : m + std::log(l);
        }
    }

    const AttentionProblem& p_;
    const AttentionTensors& t_;
    Scratch& scratch_;
};

int thread_count(const AttentionProblem& p, const Launch& launch) {
    const std::int64_t blocks = p.batch * p.heads_q * ((p.len_q + BLOCK_Q - 1) / BLOCK_Q);
    const int wanted = launch.threads > 0 ? launch.threads : omp_get_max_threads();
    return static_cast<int>(std::clamp<std::int64_t>(blocks, 1, wanted));
}

template <class T>
void run_typed(const AttentionProblem& p, const AttentionTensors& t, std::span<std::byte> workspace,
               const Launch& launch) {
    const int threads = thread_count(p, launch);
    const std::size_t share = fast_workspace_per_thread(p);
    const std::int64_t blocks = (p.len_q + BLOCK_Q - 1) / BLOCK_Q;
    const std::int64_t units = p.batch * p.heads_q * blocks;

#pragma omp parallel num_threads(threads)
    {
        Carver carver(
            workspace.subspan(share * static_cast<std::size_t>(omp_get_thread_num()), share));
        Scratch scratch(carver, p);
        QueryBlock<T> block(p, t, scratch);
        // Heads one after the other, so that threads share K and V in cache; within a head the last
        // query blocks first, since under a causal mask they are the longest.
#pragma omp for schedule(dynamic, 1)
        for (std::int64_t unit = 0; unit < units; ++unit) {
            const std::int64_t head = unit / blocks;
            block.run(head / p.heads_q, head % p.heads_q, (blocks - 1 - unit % blocks) * BLOCK_Q);
        }
    }
}

}  // namespace

FastTile fast_tile() {
    return {BLOCK_Q, BLOCK_KV};
}

std::size_t fast_workspace_per_thread(const AttentionProblem& problem) {
    Carver counter;
    Scratch sizes(counter, problem);
    return counter.used();
}

constinit const Implementation CPU_FAST{
    .name = "cpu_fast",
    .chapter = 3,
    .device = Device::cpu,
    .summary = "blocked, queries in vector lanes, all threads",
    .why_unsupported = [](const AttentionProblem&) { return std::string(); },
    .workspace_bytes =
        [](const AttentionProblem& p, const Launch& launch) {
            return fast_workspace_per_thread(p) * static_cast<std::size_t>(thread_count(p, launch));
        },
    .run =
        [](const AttentionProblem& p, const AttentionTensors& t, std::span<std::byte> workspace,
           const Launch& launch) {
            with_element_type(p.dtype, [&](auto element) {
                run_typed<decltype(element)>(p, t, workspace, launch);
            });
        },
};

}  // namespace fa
