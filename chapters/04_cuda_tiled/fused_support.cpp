#include "chapters/04_cuda_tiled/fused_support.h"

#include <fmt/format.h>

#include <limits>

#include "chapters/04_cuda_tiled/fused_kernels.h"

namespace fa {
namespace {

template <FusedStep STEP>
std::string why_unsupported(const AttentionProblem& p, std::size_t shared_limit) {
    constexpr std::int64_t GRID_LIMIT = std::numeric_limits<int>::max();
    std::string reason;
    std::size_t need = 0;
    const bool fits = with_fused_config<STEP>(p.head_dim, shared_limit, need, [&]<class Config>() {
        if (block_count<Config>(p) > GRID_LIMIT)
            reason = fmt::format("{} thread blocks, a grid has at most {}", block_count<Config>(p),
                                 GRID_LIMIT);
    });
    return fits ? reason
                : fmt::format(
                      "head_dim {} needs {} bytes of shared memory per block, the device has {}",
                      p.head_dim, need, shared_limit);
}

}  // namespace

std::string fused_why_unsupported(FusedStep step, const AttentionProblem& p,
                                  std::size_t shared_limit) {
    // Lengths are 32-bit in the kernels; leave room for the padding of the last block and tile.
    constexpr std::int64_t LENGTH_LIMIT = std::numeric_limits<int>::max() - 1024;
    if (p.head_dim > MAX_FUSED_HEAD_DIM)
        return fmt::format("head_dim is {}, at most {} is possible", p.head_dim,
                           MAX_FUSED_HEAD_DIM);
    if (p.len_q > LENGTH_LIMIT || p.len_kv > LENGTH_LIMIT)
        return fmt::format("lengths {} and {}, at most {} is possible", p.len_q, p.len_kv,
                           LENGTH_LIMIT);
    return step == FusedStep::tiled ? why_unsupported<FusedStep::tiled>(p, shared_limit)
                                    : why_unsupported<FusedStep::register_tiled>(p, shared_limit);
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
