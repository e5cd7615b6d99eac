#pragma once
/// @file
/// The kernels around the two matrix products of the baseline.

#include "common/attention.h"
#include "common/cuda/device_language.cuh"

namespace fa {

/// Threads that work on one row of S.
inline constexpr int SOFTMAX_THREADS = 256;

/// The matrices of every (batch, query head), for cuBLAS, which wants the list in device memory.
struct MatrixPointers {
    const void **q, **k, **v;
    void **s, **p, **o;
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
    Score* s;  // [batch, heads_q, len_q, len_kv]
    T* p;      // [batch, heads_q, len_q, len_kv]
    MatrixPointers pointers;
    int* v_is_finite;  // 1, or 0 if some element of V is NaN or infinite
    AttentionProblem problem;

    NaiveArguments(const AttentionProblem& pr, const AttentionTensors& t, Score* s_, T* p_,
                   MatrixPointers pointers_, int* v_is_finite_)
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
          s(s_),
          p(p_),
          pointers(pointers_),
          v_is_finite(v_is_finite_),
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

/// One thread per (batch, query head). Also raises the flag for look_for_non_finite_v().
template <class T, class Score>
__global__ void fill_pointers(const NaiveArguments<T, Score> a) {
    const AttentionProblem& p = a.problem;
    const std::int64_t n = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (n == 0) *a.v_is_finite = 1;
    if (n >= p.batch * p.heads_q) return;
    const std::int64_t b = n / p.heads_q, h = n % p.heads_q, kv = p.head_kv(h);
    const std::int64_t scores = n * p.len_q * p.len_kv;
    a.pointers.q[n] = a.q + b * a.q_strides.batch + h * a.q_strides.head;
    a.pointers.k[n] = a.k + b * a.k_strides.batch + kv * a.k_strides.head;
    a.pointers.v[n] = a.v + b * a.v_strides.batch + kv * a.v_strides.head;
    a.pointers.s[n] = a.s + scores;
    a.pointers.p[n] = a.p + scores;
    a.pointers.o[n] = a.o + b * a.o_strides.batch + h * a.o_strides.head;
}

/// Lowers the flag if V has an element that is not finite. Any grid.
template <class T, class Score>
__global__ void look_for_non_finite_v(const NaiveArguments<T, Score> a) {
    const AttentionProblem& p = a.problem;
    const std::int64_t count = p.batch * p.heads_kv * p.len_kv * p.head_dim;
    const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t n = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; n < count;
         n += step) {
        const std::int64_t c = n % p.head_dim, j = n / p.head_dim % p.len_kv;
        const std::int64_t h = n / p.head_dim / p.len_kv % p.heads_kv;
        const std::int64_t b = n / p.head_dim / p.len_kv / p.heads_kv;
        const float v =
            to_float(a.v[b * a.v_strides.batch + h * a.v_strides.head + j * a.v_strides.token + c]);
        if (!isfinite(v)) *a.v_is_finite = 0;  // every writer writes the same
    }
}

/// Reduces over the thread block; all threads get the result. `scratch` has room for 32 floats.
template <class Operation>
__device__ float block_reduce(float x, float neutral, float* scratch, Operation operation) {
    for (int offset = 16; offset > 0; offset /= 2)
        x = operation(x, __shfl_xor_sync(0xffffffffu, x, offset));
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
    __syncthreads();  // every warp's result is there
    x = threadIdx.x % 32 < blockDim.x / 32 ? scratch[threadIdx.x % 32] : neutral;
    for (int offset = 16; offset > 0; offset /= 2)
        x = operation(x, __shfl_xor_sync(0xffffffffu, x, offset));
    __syncthreads();  // scratch may be written again
    return x;
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
    const Score* s = a.s + blockIdx.x * problem.len_kv;
    T* p = a.p + blockIdx.x * problem.len_kv;
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
    const float row_m =
        block_reduce(m, minus_infinity(), scratch, [](float x, float y) { return fmaxf(x, y); });
    const float shift = row_m == minus_infinity() ? 0.0f : row_m;
    const float row_l = block_reduce(l * fast_exp(m - shift), 0.0f, scratch,
                                     [](float x, float y) { return x + y; });

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

/// O = Σ P·V over the visible keys of one row per thread block, where the matrix product could not
/// be trusted with V, or there was none.
template <class T, class Score>
__global__ void careful_weighted_sum(const NaiveArguments<T, Score> a) {
    const AttentionProblem& p = a.problem;
    if (*a.v_is_finite && p.len_kv > 0) return;
    const Row row(p, blockIdx.x);
    const T* weights = a.p + blockIdx.x * p.len_kv;
    const T* v = a.v + row.batch * a.v_strides.batch + p.head_kv(row.head) * a.v_strides.head;
    T* o = a.o + row.batch * a.o_strides.batch + row.head * a.o_strides.head +
           row.i * a.o_strides.token;
    for (std::int64_t c = threadIdx.x; c < p.head_dim; c += blockDim.x) {
        float sum = 0.0f;
        for (std::int64_t j = 0; j < p.visible_keys(row.i); ++j)
            sum += to_float(weights[j]) * to_float(v[j * a.v_strides.token + c]);
        o[c] = from_float<T>(sum);
    }
}

}  // namespace fa
