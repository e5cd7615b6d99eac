#include "chapters/04_cuda_tiled/fused_support.h"

#include <fmt/format.h>

#include <limits>

namespace fa {

std::string fused_sizes_why_unsupported(const AttentionProblem& p) {
    // Lengths are 32-bit in the kernels; leave room for the padding of the last block and tile.
    constexpr std::int64_t LENGTH_LIMIT = std::numeric_limits<int>::max() - 1024;
    if (p.head_dim > MAX_FUSED_HEAD_DIM)
        return fmt::format("head_dim is {}, at most {} is possible", p.head_dim,
                           MAX_FUSED_HEAD_DIM);
    if (p.len_q > LENGTH_LIMIT || p.len_kv > LENGTH_LIMIT)
        return fmt::format("lengths {} and {}, at most {} is possible", p.len_q, p.len_kv,
                           LENGTH_LIMIT);
    return {};
}

std::string fused_launch_why_unsupported(const AttentionProblem& p, std::int64_t blocks,
                                         std::size_t missing, std::size_t shared_limit) {
    constexpr std::int64_t GRID_LIMIT = std::numeric_limits<int>::max();
    if (missing > 0)
        return fmt::format(
            "head_dim {} needs {} bytes of shared memory per block, the device has {}", p.head_dim,
            missing, shared_limit);
    if (blocks > GRID_LIMIT)
        return fmt::format("{} thread blocks, a grid has at most {}", blocks, GRID_LIMIT);
    return {};
}

bool rows_are_wide(const AttentionProblem& p, const AttentionTensors& t) {
    const auto wide = [&](const void* data, const Strides& s) {
        return reinterpret_cast<std::uintptr_t>(data) % (4 * size_of(p.dtype)) == 0 &&
               s.batch % 4 == 0 && s.head % 4 == 0 && s.token % 4 == 0;
    };
    return p.head_dim % 4 == 0 && wide(t.q.data, t.q.strides) && wide(t.k.data, t.k.strides) &&
           wide(t.v.data, t.v.strides) && wide(t.o.data, t.o.strides);
}

}  // namespace fa
