#include "chapters/09_hopper/hopper_support.h"

#include <fmt/format.h>

#include <limits>

#include "chapters/04_cuda_tiled/fused_support.h"
#include "chapters/08_tensor_cores/tensor_core_support.h"

namespace fa {
namespace {

constexpr std::int64_t CHUNK = 8;                                   // elements, 16 bytes
constexpr std::int64_t STRIDE_LIMIT = (std::int64_t{1} << 40) / 2;  // elements

/// Of one tensor.
std::string why_not_by_tma(const char* name, const void* data, const Shape& shape,
                           const Strides& strides) {
    if (shape.count() == 0) return {};
    if (reinterpret_cast<std::uintptr_t>(data) % 16 != 0)
        return fmt::format("{} begins {} bytes after a multiple of 16; TMA needs a multiple", name,
                           reinterpret_cast<std::uintptr_t>(data) % 16);
    const auto stride = [&](const char* of, std::int64_t extent,
                            std::int64_t value) -> std::string {
        if (extent == 1) return {};
        if (value % CHUNK != 0)
            return fmt::format(
                "{}'s {} stride is {} elements; TMA needs a multiple of {} (16 bytes)", name, of,
                value, CHUNK);
        if (value >= STRIDE_LIMIT)
            return fmt::format("{}'s {} stride is {} elements; TMA needs less than {}", name, of,
                               value, STRIDE_LIMIT);
        return {};
    };
    if (std::string reason = stride("token", shape.tokens, strides.token); !reason.empty())
        return reason;
    if (shape.tokens > 1 && strides.token == 0)
        return fmt::format("{}'s token stride is 0; TMA needs tokens apart", name);
    if (std::string reason = stride("head", shape.heads, strides.head); !reason.empty())
        return reason;
    return stride("batch", shape.batch, strides.batch);
}

}  // namespace

std::string hopper_capability_why_unsupported(int compute_capability) {
    if (compute_capability == 90) return {};
    return fmt::format(
        "compute capability 9.0 (Hopper) is needed, whose warpgroup products no other has; the GPU "
        "has {}.{}",
        compute_capability / 10, compute_capability % 10);
}

std::string hopper_why_unsupported(const AttentionProblem& p, std::int64_t most_head_dim,
                                   int block_m) {
    if (p.dtype == DType::f32) return "dtype is fp32; tensor cores multiply fp16 and bf16 here";
    if (p.head_dim > most_head_dim)
        return fmt::format("head_dim is {}, at most {} is possible", p.head_dim, most_head_dim);
    if (std::string reason = fused_sizes_why_unsupported(p); !reason.empty()) return reason;
    // The counter goes on by one for each block that finds no tile any more.
    constexpr std::int64_t TILE_LIMIT = std::numeric_limits<int>::max() - (1 << 16);
    if (blocks_of(p, block_m) > TILE_LIMIT)
        return fmt::format("{} tiles, at most {} are possible", blocks_of(p, block_m), TILE_LIMIT);
    return {};
}

std::string tma_why_unsupported(const AttentionProblem& p, const AttentionTensors& t) {
    for (const auto& [name, data, shape, strides] :
         {std::tuple{"Q", t.q.data, p.q_shape(), t.q.strides},
          {"K", t.k.data, p.kv_shape(), t.k.strides},
          {"V", t.v.data, p.kv_shape(), t.v.strides},
          {"O", static_cast<const void*>(t.o.data), p.q_shape(), t.o.strides}})
        if (std::string reason = why_not_by_tma(name, data, shape, strides); !reason.empty())
            return reason;
    return {};
}

BoxSource box_source(const void* data, const Shape& shape, const Strides& strides) {
    alignas(128) static constexpr std::uint16_t NOTHING[CHUNK] = {};
    if (shape.count() == 0) return {NOTHING, {CHUNK, 1, 1, 1}, {CHUNK, CHUNK, CHUNK}};
    BoxSource source{data, {shape.dim, shape.tokens, shape.heads, shape.batch}, {}};
    const std::int64_t given[] = {strides.token, strides.head, strides.batch};
    std::int64_t before = (shape.dim + CHUNK - 1) / CHUNK * CHUNK;
    for (std::size_t i = 0; i < 3; ++i) {
        if (source.extents[i + 1] == 1 || given[i] == 0) {
            source.extents[i + 1] = 1;
            source.strides[i] = before;
        } else {
            before = source.strides[i] = given[i];
        }
    }
    return source;
}

}  // namespace fa
