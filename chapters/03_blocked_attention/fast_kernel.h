#pragma once
/// @file
/// The fast attention as a template over the way in which scores become weights, and the entry of
/// the list made from it. The arithmetic is in register_tiles.h.

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "chapters/03_blocked_attention/fast_attention.h"
#include "chapters/03_blocked_attention/register_tiles.h"
#include "common/aligned_buffer.h"

namespace fa::register_tiles {

/// The scratch of one thread.
struct Scratch {
    float* q_t;    ///< [head_dim][BLOCK_Q]  query_factor·Qᵀ
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

/// The rows as fp32: where they lie if they are, widened into `buffer` [rows, dim] if not.
template <class T>
Fp32Rows as_fp32(const T* first_row, std::int64_t stride, std::int64_t rows, std::int64_t dim,
                 float* buffer) {
    if constexpr (std::is_same_v<T, float>) {
        return {first_row, stride};  // read in place: K and V need no packing at all
    } else {
        for (std::int64_t j = 0; j < rows; ++j) {
            const T* from = first_row + j * stride;
            float* to = buffer + j * dim;
            std::int64_t c = 0;
            for (; c + LANES <= dim; c += LANES) simd::store(to + c, simd::load(from + c));
            for (; c < dim; ++c) to[c] = static_cast<float>(from[c]);
        }
        return {buffer, dim};
    }
}

/// One query block of one head, from its load to its store.
template <class T, class Weights>
class QueryBlock {
  public:
    QueryBlock(const AttentionProblem& p, const AttentionTensors& t, Scratch& scratch)
        : p_(p), t_(t), scratch_(scratch), weights_(p.effective_scale()) {}

    /// O and LSE of the block of queries that starts at `first_q`, of one head.
    void run(std::int64_t b, std::int64_t h, std::int64_t first_q) {
        const std::int64_t rows = std::min<std::int64_t>(BLOCK_Q, p_.len_q - first_q);
        load_q(b, h, first_q, rows);
        std::fill_n(scratch_.o_t, p_.head_dim * BLOCK_Q, 0.0f);
        State state;
        for (Floats& m : state.m) m = simd::broadcast(MINUS_INFINITY);
        for (Floats& l : state.l) l = Floats{};
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
        const float factor = weights_.query_factor();
        if (rows < BLOCK_Q) std::fill_n(scratch_.q_t, p_.head_dim * BLOCK_Q, 0.0f);
        for (std::int64_t i = 0; i < rows; ++i) {
            const T* row = q.row(b, h, first_q + i);
            for (std::int64_t c = 0; c < p_.head_dim; ++c)
                scratch_.q_t[c * BLOCK_Q + i] = static_cast<float>(row[c]) * factor;
        }
    }

    // [step]
    /// One block of keys: scores, mask, softmax, weighted sum.
    void step(Fp32Rows k, Fp32Rows v, std::int64_t first_q, std::int64_t first_kv,
              std::int64_t keys, State& state) {
        const Visibility visible = visibility(first_q, first_kv, keys);
        Rows maximum, correction;
        for (Floats& lanes : maximum) lanes = simd::broadcast(MINUS_INFINITY);
        scores(scratch_.q_t, k, p_.head_dim, visible, scratch_.s_t, maximum);
        softmax_block(weights_, scratch_.s_t, visible, maximum, state, correction);
        weighted_sum(scratch_.s_t, v, p_.head_dim, visible, correction, scratch_.o_t);
    }
    // [step]

    /// What query block first_q … sees of key block first_kv ….
    Visibility visibility(std::int64_t first_q, std::int64_t first_kv, std::int64_t keys) const {
        const auto seen_by = [&](std::int64_t query) {
            return std::clamp<std::int64_t>(p_.visible_keys(query) - first_kv, 0, keys);
        };
        Visibility visible;
        visible.all = seen_by(first_q);
        std::fill_n(visible.seen, ROW_VECTORS, keys);
        if (visible.all == keys) return visible;
        for (int r = 0; r < ROW_VECTORS; ++r) {
            const std::int64_t first = first_q + r * LANES;
            visible.seen[r] = seen_by(first + LANES - 1);
            for (int lane = 0; lane < LANES; ++lane)
                visible.limit[r][lane] = static_cast<std::int32_t>(seen_by(first + lane));
        }
        return visible;
    }

    void store_o(std::int64_t b, std::int64_t h, std::int64_t first_q, std::int64_t rows,
                 const State& state) {
        // l is 0 only if no key had any weight: then O is 0. NaN takes the division.
        for (std::int64_t c = 0; c < p_.head_dim; ++c)
            for (int r = 0; r < ROW_VECTORS; ++r) {
                float* o_t = scratch_.o_t + c * BLOCK_Q + r * LANES;
                const Floats l = state.l[r];
                simd::store(o_t, l == 0.0f ? Floats{} : simd::load(o_t) / l);
            }
        const auto o = t_.o.as<T>();
        for (std::int64_t i = 0; i < rows; ++i) {
            T* row = o.row(b, h, first_q + i);
            for (std::int64_t c = 0; c < p_.head_dim; ++c)
                row[c] = static_cast<T>(scratch_.o_t[c * BLOCK_Q + i]);
        }
        if (!t_.lse.data) return;
        for (std::int64_t i = 0; i < rows; ++i) {
            const float m = state.m[i / LANES][i % LANES], l = state.l[i / LANES][i % LANES];
            t_.lse.row(b, h)[first_q + i] = l == 0.0f ? MINUS_INFINITY : weights_.lse(m, l);
        }
    }

    const AttentionProblem& p_;
    const AttentionTensors& t_;
    Scratch& scratch_;
    Weights weights_;
};

/// Threads worth starting: as many as asked for or offered, at most one a query block.
inline int thread_count(const AttentionProblem& p, const Launch& launch) {
    const std::int64_t blocks = p.batch * p.heads_q * ((p.len_q + BLOCK_Q - 1) / BLOCK_Q);
    return static_cast<int>(std::clamp<std::int64_t>(blocks, 1, launch.thread_count()));
}

/// All blocks of queries of a problem with elements of type T, shared out among threads.
template <class T, class Weights>
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
        QueryBlock<T, Weights> block(p, t, scratch);
        // Heads one after the other, so that threads share K and V in cache; within a head the last
        // query blocks first, since under a causal mask they are the longest.
#pragma omp for schedule(dynamic, 1)
        for (std::int64_t unit = 0; unit < units; ++unit) {
            const std::int64_t head = unit / blocks;
            block.run(head / p.heads_q, head % p.heads_q, (blocks - 1 - unit % blocks) * BLOCK_Q);
        }
    }
}

/// An entry of the list.
template <class Weights>
constexpr Implementation entry(std::string_view name, int chapter, std::string_view summary) {
    return {
        .name = name,
        .chapter = chapter,
        .device = Device::cpu,
        .summary = summary,
        .why_unsupported = [](const AttentionProblem&) { return std::string(); },
        .workspace_bytes =
            [](const AttentionProblem& p, const Launch& launch) {
                return fast_workspace_per_thread(p) *
                       static_cast<std::size_t>(thread_count(p, launch));
            },
        .run =
            [](const AttentionProblem& p, const AttentionTensors& t, std::span<std::byte> workspace,
               const Launch& launch) {
                with_element_type(p.dtype, [&](auto element) {
                    run_typed<decltype(element), Weights>(p, t, workspace, launch);
                });
            },
    };
}

}  // namespace fa::register_tiles
