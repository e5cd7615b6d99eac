#pragma once
/// @file
/// The kernels around the two matrix products of the baseline.

#include "common/attention.h"
#include "common/cuda/block_reduce.cuh"
#include "common/cuda/device_language.cuh"

namespace fa {

/// Threads that work on one row of S.
inline constexpr int SOFTMAX_THREADS = 256;

/// The matrices of every (batch, query head), for cuBLAS, which wants the list in device memory.
struct MatrixPointers {
    const void **q, **k, **v;
    void **s, **p, **o;
};

/// What the three steps leave for one another in the workspace.
template <class T, class Score>
struct NaiveMatrices {
    Score* s;    // [batch, heads_q, len_q, len_kv]
    T* p;        // [batch, heads_q, len_q, len_kv]
    T* v_clean;  // [batch, heads_kv, len_kv, head_dim]: V with 0 for NaN and infinity
    T* o_dense;  // [batch, heads_q, len_q, head_dim]: the product, before its rows go where O is
    unsigned long long* first_non_finite;  // [batch, heads_kv]: the first such key, or len_kv
    MatrixPointers pointers;
};

/// What the kernels need of a problem, by value.
/// @tparam T type of Q, K, V, P and O   @tparam Score type of S
template <class T, class Score>
struct NaiveArguments {
    const T *q, *k, *v;
    T* o;
    float* lse;  // or null
    Strides q_strides, k_strides, v_strides, o_strides;
    std::int64_t lse_stride_batch, lse_stride_head;
    NaiveMatrices<T, Score> m;
    AttentionProblem problem;

    NaiveArguments(const AttentionProblem& pr, const AttentionTensors& t,
                   const NaiveMatrices<T, Score>& matrices)
        : q(t.q.as<T>().data),
          k(t.k.as<T>().data),
          v(t.v.as<T>().data),
          o(t.o.as<T>().data),
          lse(t.lse.data),
          q_strides(t.q.strides),
          k_strides(t.k.strides),
          v_strides(t.v.strides),
          o_strides(t.o.strides),
          lse_stride_batch(t.lse.stride_batch),
          lse_stride_head(t.lse.stride_head),
          m(matrices),
          problem(pr) {}
};

/// One row of S: its coordinates from its number.
struct Row {
    std::int64_t batch, head, i;

    __device__ Row(const AttentionProblem& p, std::int64_t number)
        : batch(number / p.len_q / p.heads_q),
          head(number / p.len_q % p.heads_q),
          i(number % p.len_q) {}
};

/// One thread per (batch, query head). Also resets first_non_finite for clean_v().
template <class T, class Score>
__global__ void fill_pointers(const NaiveArguments<T, Score> a) {
    const AttentionProblem& p = a.problem;
    const std::int64_t n = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (n >= p.batch * p.heads_q) return;
    const std::int64_t b = n / p.heads_q, h = n % p.heads_q, kv = p.head_kv(h);
    const std::int64_t scores = n * p.len_q * p.len_kv;
    a.m.pointers.q[n] = a.q + b * a.q_strides.batch + h * a.q_strides.head;
    a.m.pointers.k[n] = a.k + b * a.k_strides.batch + kv * a.k_strides.head;
    a.m.pointers.v[n] = a.m.v_clean + (b * p.heads_kv + kv) * p.len_kv * p.head_dim;
    a.m.pointers.s[n] = a.m.s + scores;
    a.m.pointers.p[n] = a.m.p + scores;
    a.m.pointers.o[n] = a.m.o_dense + n * p.len_q * p.head_dim;
    a.m.first_non_finite[b * p.heads_kv + kv] = static_cast<unsigned long long>(p.len_kv);
}

/// Copies V, with 0 for what is NaN or infinite, and notes the first key of each head that holds
/// such a value. Any grid.
template <class T, class Score>
__global__ void clean_v(const NaiveArguments<T, Score> a) {
    const AttentionProblem& p = a.problem;
    const std::int64_t count = p.batch * p.heads_kv * p.len_kv * p.head_dim;
    const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t n = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; n < count;
         n += step) {
        const std::int64_t c = n % p.head_dim, j = n / p.head_dim % p.len_kv;
        const std::int64_t head = n / p.head_dim / p.len_kv;  // of all batches
        const T v = a.v[head / p.heads_kv * a.v_strides.batch +
                        head % p.heads_kv * a.v_strides.head + j * a.v_strides.token + c];
        const bool finite = isfinite(to_float(v));
        a.m.v_clean[n] = finite ? v : from_float<T>(0.0f);
        if (!finite) atomicMin(a.m.first_non_finite + head, static_cast<unsigned long long>(j));
    }
}

// [softmax]
/// P = softmax(S) for one row per thread block: the keys that the row sees, 0 for the rest, and
/// LSE. S is read twice, the second time mostly from cache: once for maximum and sum together (the
/// online softmax of chapter 2, per thread), once to write P.
/// @tparam N elements per load; the rows' length must be a multiple of it
template <class T, class Score, int N>
__global__ void __launch_bounds__(SOFTMAX_THREADS) softmax_row(const NaiveArguments<T, Score> a) {
    __shared__ float scratch[32];
    const AttentionProblem& problem = a.problem;
    const Row row(problem, blockIdx.x);
    const Score* s = a.m.s + blockIdx.x * problem.len_kv;
    T* p = a.m.p + blockIdx.x * problem.len_kv;
    const std::int64_t visible = problem.visible_keys(row.i);

    float m = minus_infinity(), l = 0.0f;
    for (std::int64_t j = threadIdx.x * N; j < visible; j += SOFTMAX_THREADS * N) {
        const Packed<Score, N> piece = load_packed<N>(s + j);
        float largest = m;
        for (int e = 0; e < N; ++e)
            if (j + e < visible) largest = fmaxf(largest, to_float(piece[e]));
        const float shift = largest == minus_infinity() ? 0.0f : largest;
        l *= fast_exp(m - shift);
        for (int e = 0; e < N; ++e)
            if (j + e < visible) l += fast_exp(to_float(piece[e]) - shift);
        m = largest;
    }
    const float row_m = block_maximum(m, scratch);
    const float shift = row_m == minus_infinity() ? 0.0f : row_m;
    const float row_l = block_sum(l * fast_exp(m - shift), scratch);

    const bool empty = row_l == 0.0f;  // no visible key
    const float inverse = 1.0f / row_l;
    for (std::int64_t j = threadIdx.x * N; j < problem.len_kv; j += SOFTMAX_THREADS * N) {
        Packed<T, N> weights;
        Packed<Score, N> piece{};
        if (j < visible) piece = load_packed<N>(s + j);
        for (int e = 0; e < N; ++e)
            weights[e] = from_float<T>(
                j + e >= visible || empty ? 0.0f : fast_exp(to_float(piece[e]) - shift) * inverse);
        store_packed(p + j, weights);
    }
    if (a.lse && threadIdx.x == 0)
        a.lse[row.batch * a.lse_stride_batch + row.head * a.lse_stride_head + row.i] =
            empty ? minus_infinity() : shift + logf(row_l);
}
// [softmax]

/// Copies the product's rows to O. Rows that see a V that is not finite (and all rows if there is
/// no key, hence no product) sum P·V over their visible keys alone, V as it is. One thread block
/// per row.
template <class T, class Score>
__global__ void store_output(const NaiveArguments<T, Score> a) {
    const AttentionProblem& p = a.problem;
    const Row row(p, blockIdx.x);
    const std::int64_t kv = p.head_kv(row.head), visible = p.visible_keys(row.i);
    const auto first = a.m.first_non_finite[row.batch * p.heads_kv + kv];
    const bool careful = static_cast<std::int64_t>(first) < visible || p.len_kv == 0;
    const T* weights = a.m.p + blockIdx.x * p.len_kv;
    const T* v = a.v + row.batch * a.v_strides.batch + kv * a.v_strides.head;
    const T* product = a.m.o_dense + blockIdx.x * p.head_dim;
    T* o = a.o + row.batch * a.o_strides.batch + row.head * a.o_strides.head +
           row.i * a.o_strides.token;
    for (std::int64_t c = threadIdx.x; c < p.head_dim; c += blockDim.x) {
        if (!careful) {
            o[c] = product[c];
            continue;
        }
        float sum = 0.0f, weight = 0.0f;
        for (std::int64_t j = 0; j < visible; ++j) {
            sum += to_float(weights[j]) * to_float(v[j * a.v_strides.token + c]);
            weight += to_float(weights[j]);
        }
        o[c] = from_float<T>(weight == 0.0f ? 0.0f : sum);  // all scores −∞: nothing to share out
    }
}

}  // namespace fa
