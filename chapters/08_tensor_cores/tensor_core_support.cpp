#include "chapters/08_tensor_cores/tensor_core_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "chapters/04_cuda_tiled/fused_support.h"

namespace fa {

std::int64_t blocks_of(const AttentionProblem& p, int block_m) {
    return p.batch * p.heads_q * ((p.len_q + block_m - 1) / block_m);
}

bool rows_are_chunked(const AttentionProblem& p, const AttentionTensors& t) {
    constexpr std::int64_t CHUNK = 8;
    const auto chunked = [](const void* data, const Strides& s) {
        return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && s.batch % CHUNK == 0 &&
               s.head % CHUNK == 0 && s.token % CHUNK == 0;
    };
    return p.head_dim % CHUNK == 0 && chunked(t.q.data, t.q.strides) &&
           chunked(t.k.data, t.k.strides) && chunked(t.v.data, t.v.strides) &&
           chunked(t.o.data, t.o.strides);
}

int heads_of_section(const AttentionProblem& p, std::size_t l2_bytes) {
    const double heads = static_cast<double>(p.batch * p.heads_q);
    const double kv_bytes =
        2.0 * static_cast<double>(size_of(p.dtype)) * static_cast<double>(p.kv_shape().count());
    const double sections = std::clamp(2.0 * kv_bytes / static_cast<double>(l2_bytes), 1.0, heads);
    const auto whole = static_cast<std::int64_t>(sections);
    const std::int64_t count = whole + (static_cast<double>(whole) < sections ? 1 : 0);
    return static_cast<int>((p.batch * p.heads_q + count - 1) / count);
}

std::string capability_why_unsupported(int compute_capability) {
    if (compute_capability >= 80) return {};
    return fmt::format("compute capability 8.0 is needed, the GPU has {}.{}",
                       compute_capability / 10, compute_capability % 10);
}

std::string tensor_core_why_unsupported(const AttentionProblem& p, std::int64_t most_head_dim,
                                        int block_m, std::size_t shared_need,
                                        std::size_t shared_limit) {
    if (p.dtype == DType::f32) return "dtype is fp32; tensor cores multiply fp16 and bf16 here";
    if (p.head_dim > most_head_dim)
        return fmt::format("head_dim is {}, at most {} is possible", p.head_dim, most_head_dim);
    if (std::string reason = fused_sizes_why_unsupported(p); !reason.empty()) return reason;
    return fused_launch_why_unsupported(p, blocks_of(p, block_m),
                                        shared_need > shared_limit ? shared_need : 0, shared_limit);
}

}  // namespace fa
