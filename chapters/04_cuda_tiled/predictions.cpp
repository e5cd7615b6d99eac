#include "chapters/04_cuda_tiled/predictions.h"

#include <algorithm>

#include "chapters/04_cuda_tiled/fused_kinds.h"
#include "chapters/04_cuda_tiled/multiprocessor.h"
#include "common/attention_data.h"

namespace fa {
namespace {

/// Clocks of the shared memory for one tile: what a block with two tiles takes longer than a block
/// with one, counted by the executor.
template <class Kernel>
double wavefronts_per_tile(const AttentionProblem& shape, const KernelResources& r) {
    const auto wavefronts = [&](int tiles) {
        AttentionProblem p = shape;
        p.batch = p.heads_q = p.heads_kv = 1;
        p.len_q = r.block_m;
        p.len_kv = tiles * r.block_n;
        p.causal = false;
        return with_element_type(p.dtype, [&](auto element) {
            AttentionData<decltype(element)> data(p, 1);
            return static_cast<double>(
                run_on_executor<Kernel>(p, data.tensors(), {.count_banks = true})
                    .shared_wavefronts);
        });
    };
    return wavefronts(2) - wavefronts(1);
}

// [model]
/// What the units have to do for all tiles, masked halves and padded channels included, over what
/// 132 multiprocessors do in a second.
template <class Kernel>
Busy predict_fused(const AttentionProblem& p) {
    using M = Multiprocessor;
    const KernelResources r = sizes_of<Kernel>(p, M::SHARED_BYTES_PER_BLOCK);
    const auto tiles = static_cast<double>(tiles_of(p, r.block_m, r.block_n));
    const double scores = tiles * r.block_m * r.block_n;
    const double clocks_per_second = M::COUNT * M::CLOCK_HZ;
    return {
        .memory = q_outer_cost(p, {r.block_m, r.block_n}).bytes / h200_ceilings().bytes_per_s,
        .products = 2 * scores * r.head_dim / M::MULTIPLY_ADDS_PER_CLOCK / clocks_per_second,
        .shared = tiles * wavefronts_per_tile<Kernel>(p, r) / M::SHARED_WAVEFRONTS_PER_CLOCK /
                  clocks_per_second,
        .exponentials = scores / M::EXPONENTIALS_PER_CLOCK / clocks_per_second,
    };
}
// [model]

}  // namespace

double Busy::longest() const {
    return std::max({memory, products, shared, exponentials});
}

std::string_view Busy::bound() const {
    const double most = longest();
    return most == memory     ? "memory"
           : most == products ? "products"
           : most == shared   ? "shared memory"
                              : "exponentials";
}

std::array<Cost, 4> cuda_naive_cost(const AttentionProblem& p) {
    const auto element = static_cast<double>(size_of(p.dtype));
    const double q = element * static_cast<double>(p.q_shape().count());
    const double kv = element * static_cast<double>(p.kv_shape().count());
    const double s = score_bytes(p, DType::f32), weights = score_bytes(p, p.dtype);
    const double scores = score_bytes(p, DType::f32) / sizeof(float);
    double seen = 0;
    for (std::int64_t i = 0; i < p.len_q; ++i) seen += static_cast<double>(p.visible_keys(i));
    seen *= static_cast<double>(p.batch * p.heads_q);
    const double product = 2 * scores * static_cast<double>(p.head_dim);
    return {{
        {.bytes = 2 * kv + 2 * q},  // read and write V; read and write O
        {.bytes = q + kv + s, .flops = product},
        {.bytes = sizeof(float) * seen + weights, .exponentials = 2 * seen},
        {.bytes = weights + kv + q, .flops = product},
    }};
}

std::vector<Prediction> predictions(const AttentionProblem& p) {
    Ceilings ceilings = h200_ceilings();
    if (p.dtype == DType::f32)  // no tensor cores: TF32 is off
        ceilings.flops_per_s = 2 * Multiprocessor::MULTIPLY_ADDS_PER_CLOCK * Multiprocessor::COUNT *
                               Multiprocessor::CLOCK_HZ;
    constexpr std::array STEPS{"naive: copies of V and O", "naive: S = Q K^T",
                               "naive: P = softmax(S)", "naive: O = P V"};
    std::vector<Prediction> list;
    const auto steps = cuda_naive_cost(p);
    for (std::size_t i = 0; i < steps.size(); ++i)
        list.push_back({STEPS[i],
                        {.memory = steps[i].bytes / ceilings.bytes_per_s,
                         .products = steps[i].flops / ceilings.flops_per_s,
                         .exponentials = steps[i].exponentials / ceilings.exponentials_per_s}});
    for_each_fused_kernel([&]<class Kernel>(std::string_view name) {
        list.push_back({std::string(name), predict_fused<Kernel>(p)});
    });
    return list;
}

}  // namespace fa
