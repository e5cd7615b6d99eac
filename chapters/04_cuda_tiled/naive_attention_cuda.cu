#include <limits>

#include "chapters/04_cuda_tiled/naive_attention_cuda.h"
#include "chapters/04_cuda_tiled/naive_kernels.cuh"
#include "common/aligned_buffer.h"
#include "common/cuda/check.h"
#include "common/cuda/cublas.h"
#include "common/cuda/device.h"
#include "common/cuda/launch.cuh"

namespace fa {
namespace {

template <class T>
constexpr cudaDataType_t CUDA_TYPE = std::is_same_v<T, float>      ? CUDA_R_32F
                                     : std::is_same_v<T, BFloat16> ? CUDA_R_16BF
                                                                   : CUDA_R_16F;

/// Carves the matrices out of the workspace.
template <class T, class Score>
NaiveMatrices<T, Score> carve_matrices(const AttentionProblem& problem, Carver& carver) {
    const auto heads = static_cast<std::size_t>(problem.batch * problem.heads_q);
    const auto heads_kv = static_cast<std::size_t>(problem.batch * problem.heads_kv);
    const std::size_t scores =
        heads * static_cast<std::size_t>(problem.len_q) * static_cast<std::size_t>(problem.len_kv);
    NaiveMatrices<T, Score> m;
    m.s = carver.carve<Score>(scores);
    m.p = carver.carve<T>(scores);
    m.v_clean = carver.carve<T>(static_cast<std::size_t>(problem.kv_shape().count()));
    m.o_dense = carver.carve<T>(static_cast<std::size_t>(problem.q_shape().count()));
    m.first_non_finite = carver.carve<unsigned long long>(heads_kv);
    m.pointers.q = carver.carve<const void*>(heads);
    m.pointers.k = carver.carve<const void*>(heads);
    m.pointers.v = carver.carve<const void*>(heads);
    m.pointers.s = carver.carve<void*>(heads);
    m.pointers.p = carver.carve<void*>(heads);
    m.pointers.o = carver.carve<void*>(heads);
    return m;
}

/// A leading dimension for cuBLAS: the distance between tokens.
/// @throws Unsupported if it is smaller than a row
std::int64_t leading_dimension(const char* name, std::int64_t stride, std::int64_t head_dim,
                               std::int64_t tokens) {
    if (tokens <= 1) return head_dim;
    if (stride < head_dim)
        throw Unsupported(std::string("cuBLAS needs tokens that do not overlap; those of ") + name +
                          " are " + std::to_string(stride) + " elements apart");
    return stride;
}

// [three-steps]
template <class T, class Score>
void run_typed(const AttentionProblem& p, const AttentionTensors& t, std::span<std::byte> memory,
               cudaStream_t stream) {
    Carver carver(memory);
    const NaiveMatrices<T, Score> m = carve_matrices<T, Score>(p, carver);
    const NaiveArguments<T, Score> a(p, t, m);
    const std::int64_t heads = p.batch * p.heads_q, rows = heads * p.len_q;
    const std::int64_t ld_q = leading_dimension("Q", a.q_strides.token, p.head_dim, p.len_q);
    const std::int64_t ld_k = leading_dimension("K", a.k_strides.token, p.head_dim, p.len_kv);
    cublasHandle_t cublas = cublas_handle(stream);
    const float scale = p.effective_scale(), one = 1.0f, zero = 0.0f;

    launch(fill_pointers<T, Score>, (heads + 255) / 256, 256, 0, stream, a);
    launch(clean_v<T, Score>, 1024, 256, 0, stream, a);

    // 1. S = scale·Q·Kᵀ. cuBLAS counts columns first, so it is told Sᵀ = K·Qᵀ.
    if (p.len_kv > 0)
        FA_CUBLAS_CHECK(cublasGemmBatchedEx_64(
            cublas, CUBLAS_OP_T, CUBLAS_OP_N, p.len_kv, p.len_q, p.head_dim, &scale, m.pointers.k,
            CUDA_TYPE<T>, ld_k, m.pointers.q, CUDA_TYPE<T>, ld_q, &zero, m.pointers.s,
            CUDA_TYPE<Score>, p.len_kv, heads, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));

    // 2. P = softmax(S), a thread block per row
    const auto softmax = p.len_kv % 4 == 0 ? softmax_row<T, Score, 4> : softmax_row<T, Score, 1>;
    launch(softmax, rows, SOFTMAX_THREADS, 0, stream, a);

    // 3. O = P·V, told as Oᵀ = Vᵀ·Pᵀ
    if (p.len_kv > 0)
        FA_CUBLAS_CHECK(cublasGemmBatchedEx_64(
            cublas, CUBLAS_OP_N, CUBLAS_OP_N, p.head_dim, p.len_q, p.len_kv, &one, m.pointers.v,
            CUDA_TYPE<T>, p.head_dim, m.pointers.p, CUDA_TYPE<T>, p.len_kv, &zero, m.pointers.o,
            CUDA_TYPE<T>, p.head_dim, heads, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));

    // The product multiplied masked V by P = 0, and 0·NaN is NaN: hence the clean copy of V. Rows
    // that do see NaN or infinity get them back here. And cuBLAS wrote to a dense O: with a single
    // query it was seen to write wrong places where O is aligned to its elements only.
    launch(store_output<T, Score>, rows, 64, 0, stream, a);
}
// [three-steps]

template <bool SHORT_SCORES>
std::string why_unsupported(const AttentionProblem& p) {
    if (!why_no_gpu().empty()) return why_no_gpu();
    if (SHORT_SCORES && p.dtype == DType::f32)
        return "16-bit scores are for 16-bit inputs; this is fp32";
    constexpr std::int64_t LIMIT = std::numeric_limits<int>::max();
    if (p.batch * p.heads_q * p.len_q > LIMIT)
        return "B·H·Tq is " + std::to_string(p.batch * p.heads_q * p.len_q) +
               ", a grid has at most 2^31 - 1 blocks";
    return {};
}

/// Calls `use.template operator()<T, Score>()` with the problem's types.
template <bool SHORT_SCORES, class Use>
auto with_types(const AttentionProblem& p, Use&& use) {
    return with_element_type(p.dtype, [&](auto element) {
        using T = decltype(element);
        return use.template operator()<T, std::conditional_t<SHORT_SCORES, T, float>>();
    });
}

template <bool SHORT_SCORES>
std::size_t workspace_bytes(const AttentionProblem& p, const Launch&) {
    return with_types<SHORT_SCORES>(p, [&]<class T, class Score>() {
        Carver counter;
        carve_matrices<T, Score>(p, counter);
        return counter.used();
    });
}

template <bool SHORT_SCORES>
void run(const AttentionProblem& p, const AttentionTensors& t, std::span<std::byte> workspace,
         const Launch& how) {
    with_types<SHORT_SCORES>(p, [&]<class T, class Score>() {
        run_typed<T, Score>(p, t, workspace, static_cast<cudaStream_t>(how.stream));
    });
}

}  // namespace

constinit const Implementation CUDA_NAIVE{
    .name = "cuda_naive",
    .chapter = 4,
    .device = Device::cuda,
    .summary = "cuBLAS, softmax, cuBLAS; S in fp32 in memory",
    .why_unsupported = why_unsupported<false>,
    .workspace_bytes = workspace_bytes<false>,
    .run = run<false>,
};

constinit const Implementation CUDA_NAIVE_16BIT_SCORES{
    .name = "cuda_naive_16bit_scores",
    .chapter = 4,
    .device = Device::cuda,
    .summary = "cuBLAS, softmax, cuBLAS; S in 16 bits in memory",
    .rounds_scores = true,
    .why_unsupported = why_unsupported<true>,
    .workspace_bytes = workspace_bytes<true>,
    .run = run<true>,
};

}  // namespace fa
