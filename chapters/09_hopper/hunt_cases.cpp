#include "chapters/09_hopper/hunt_cases.h"

#include <fmt/format.h>

#include <algorithm>

namespace fa {
namespace {

constexpr std::int64_t rounded_up(std::int64_t n, std::int64_t to) {
    return (n + to - 1) / to * to;
}

const char* name_of(HuntLayout layout) {
    switch (layout) {
        case HuntLayout::heads_first: return "heads first";
        case HuntLayout::tokens_first: return "tokens first";
        case HuntLayout::packed: break;
    }
    return "packed";
}

/// Batch and heads: few, one, or as many as fit into about 2^19 queries.
void draw_heads(AttentionProblem& p, Random& random) {
    const auto below = [&](std::int64_t bound) {
        return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound)));
    };
    static constexpr std::int64_t GROUPS[] = {1, 1, 1, 2, 3, 8};
    const std::int64_t group = GROUPS[below(std::size(GROUPS))], size = below(10);
    if (size == 0) return;  // one head
    const std::int64_t most =
        size == 1 ? std::min<std::int64_t>(4096, (1 << 19) / std::max(p.len_q, p.len_kv)) : 18;
    p.batch = 1 + below(std::clamp<std::int64_t>(most / 6, 1, 300));
    p.heads_kv = 1 + below(std::max<std::int64_t>(1, most / (p.batch * group)));
    p.heads_q = p.heads_kv * group;
}

}  // namespace

HuntCase hunt_case(std::int64_t n, Random& random) {
    const auto below = [&](std::int64_t bound) {
        return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound)));
    };
    HuntCase c;
    c.number = n;
    if (n % 3 == 2) c.step = static_cast<int>(1 + below(8));
    if (n % 4 == 1) c.step = HuntCase::PAIRED;
    AttentionProblem& p = c.problem;
    p.len_q = 1 + 2 * (n % HUNT_LENGTHS);
    p.len_kv = below(4) == 0 ? 1 + below(2 * HUNT_LENGTHS - 1) : p.len_q;
    p.causal = below(2) == 0;
    const bool is_step = c.step != HuntCase::LAST && c.step != HuntCase::PAIRED;
    const std::int64_t most_channels = is_step ? 64 : 128;
    switch (below(4)) {
        case 0: p.head_dim = 1 + below(most_channels); break;
        case 1: p.head_dim = most_channels; break;
        default: p.head_dim = 64;
    }
    draw_heads(p, random);
    const std::int64_t scale = below(16);
    if (scale < 2) p.scale = static_cast<float>(-0.25 * random.uniform());
    if (scale == 2) p.scale = 0.0f;
    c.layout = static_cast<HuntLayout>(below(3));
    c.in_graph = below(6) == 0;
    c.delayed = below(4) == 0;
    p.dtype = !c.delayed && below(3) == 0 ? DType::f16 : DType::bf16;
    if (c.delayed) {
        c.delayed_warp = below(1 << 20);
        // Up to many times what a block of keys takes; less where blocks queue up.
        c.delay_nanoseconds = 100 << below(p.batch * p.heads_q > 18 ? 4 : 7);
    }
    return c;
}

std::string describe(const HuntCase& c) {
    std::string text =
        fmt::format("case {}, {}, {}", c.number,
                    c.step == HuntCase::LAST     ? "the last kernels"
                    : c.step == HuntCase::PAIRED ? "the last kernels in pairs of blocks"
                                                 : fmt::format("step {}", c.step),
                    describe(c.problem));
    if (c.problem.scale) text += fmt::format(", scale {}", *c.problem.scale);
    text += fmt::format(", {}", name_of(c.layout));
    if (c.in_graph) text += ", in a graph";
    if (c.delayed)
        text += fmt::format(", warp {} (modulo its warps) delayed by {} ns", c.delayed_warp,
                            c.delay_nanoseconds);
    return text;
}

HuntTensors lay_out(const HuntCase& c, std::byte* memory) {
    const AttentionProblem& p = c.problem;
    HuntTensors result;
    const std::int64_t row = rounded_up(p.head_dim, 8);
    result.row_elements = row;
    std::size_t used = 0;
    // All rows of all tensors lie on one grid, and tensors at multiples of 256 bytes.
    const auto place = [&](std::int64_t elements) {
        const std::size_t at = used;
        used += static_cast<std::size_t>(2 * rounded_up(elements, 128 * row));
        return memory == nullptr ? nullptr : memory + at;
    };
    /// Heads of a tensor, from the `first`-th of `in_all` heads on.
    const auto strides = [&](const Shape& shape, std::int64_t in_all) {
        if (c.layout == HuntLayout::heads_first)
            return Strides{shape.heads * shape.tokens * row, shape.tokens * row, row};
        return Strides{shape.tokens * in_all * row, row, in_all * row};
    };
    const auto input = [&](std::byte* data, const Shape& shape, std::int64_t first,
                           std::int64_t in_all) {
        return ConstTensorView(data == nullptr ? nullptr : data + first * row * 2, p.dtype, shape,
                               strides(shape, in_all));
    };
    const auto alone = [&](const Shape& shape) {
        return place(shape.batch * shape.heads * shape.tokens * row);
    };
    AttentionTensors& t = result.tensors;
    const Shape q = p.q_shape(), kv = p.kv_shape();
    if (c.layout == HuntLayout::packed) {
        const bool all = p.len_q == p.len_kv;
        const std::int64_t q_heads = all ? p.heads_q : 0, in_all = q_heads + 2 * p.heads_kv;
        std::byte* const own_q = all ? nullptr : alone(q);
        std::byte* const together = place(p.batch * p.len_kv * in_all * row);
        t.q = all ? input(together, q, 0, in_all) : input(own_q, q, 0, p.heads_q);
        t.k = input(together, kv, q_heads, in_all);
        t.v = input(together, kv, q_heads + p.heads_kv, in_all);
    } else {
        t.q = input(alone(q), q, 0, q.heads);
        t.k = input(alone(kv), kv, 0, kv.heads);
        t.v = input(alone(kv), kv, 0, kv.heads);
    }
    result.input_bytes = used;
    result.outputs = memory == nullptr ? nullptr : memory + used;
    t.o = TensorView(alone(q), p.dtype, q, strides(q, q.heads));
    const std::int64_t lse = p.batch * p.heads_q * p.len_q;
    t.lse = {reinterpret_cast<float*>(place(2 * lse)), p.heads_q * p.len_q, p.len_q};
    result.output_bytes = used - result.input_bytes;
    return result;
}

}  // namespace fa
