#include "common/attention.h"

#include <fmt/format.h>

#include <cmath>

namespace fa {

float AttentionProblem::effective_scale() const {
    return scale ? *scale : static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

double AttentionProblem::flops() const {
    const double full = 4.0 * static_cast<double>(batch) * static_cast<double>(heads_q) *
                        static_cast<double>(len_q) * static_cast<double>(len_kv) *
                        static_cast<double>(head_dim);
    return causal ? full / 2 : full;
}

std::string describe(const AttentionProblem& p) {
    return fmt::format("B{} H{}/{} Tq{} Tk{} d{} {} {}", p.batch, p.heads_q, p.heads_kv, p.len_q,
                       p.len_kv, p.head_dim, name_of(p.dtype), p.causal ? "causal" : "full");
}

std::string_view name_of(Device device) { return device == Device::cpu ? "cpu" : "cuda"; }

namespace {

/// Throws unless the product of the extents stays below 2^62, so that byte counts and offsets fit
/// into 64 bits.
void check_product(std::string_view what, std::initializer_list<std::int64_t> extents) {
    constexpr std::int64_t LIMIT = std::int64_t{1} << 62;
    std::int64_t product = 1;
    for (std::int64_t extent : extents)
        if (extent == 0) return;
    for (std::int64_t extent : extents) {
        if (product > LIMIT / extent)
            throw std::invalid_argument(
                fmt::format("attention problem: {} has more than 2^62 elements", what));
        product *= extent;
    }
}

void check_view(std::string_view name, DType dtype, const Shape& shape, const void* data,
                DType want_dtype, const Shape& want) {
    if (dtype != want_dtype)
        throw std::invalid_argument(fmt::format("attention: {} is {}, the problem says {}", name,
                                                name_of(dtype), name_of(want_dtype)));
    if (shape != want)
        throw std::invalid_argument(fmt::format(
            "attention: {} has shape [{}, {}, {}, {}], the problem needs [{}, {}, {}, {}]", name,
            shape.batch, shape.heads, shape.tokens, shape.dim, want.batch, want.heads, want.tokens,
            want.dim));
    if (data == nullptr && want.count() > 0)
        throw std::invalid_argument(fmt::format("attention: {} has no memory", name));
}

}  // namespace

void validate(const AttentionProblem& p) {
    const auto need = [](std::string_view field, std::int64_t value, std::int64_t least) {
        if (value < least)
            throw std::invalid_argument(fmt::format(
                "attention problem: {} is {}, must be at least {}", field, value, least));
    };
    need("batch", p.batch, 0);
    need("heads_kv", p.heads_kv, 1);
    need("heads_q", p.heads_q, 1);
    need("len_q", p.len_q, 0);
    need("len_kv", p.len_kv, 0);
    need("head_dim", p.head_dim, 1);
    if (p.heads_q % p.heads_kv != 0)
        throw std::invalid_argument(
            fmt::format("attention problem: heads_q is {}, must be a multiple of heads_kv, {}",
                        p.heads_q, p.heads_kv));
    if (p.scale && !std::isfinite(*p.scale))
        throw std::invalid_argument(
            fmt::format("attention problem: scale is {}, must be finite", *p.scale));
    check_product("Q", {p.batch, p.heads_q, p.len_q, p.head_dim});
    check_product("K", {p.batch, p.heads_kv, p.len_kv, p.head_dim});
    check_product("S", {p.batch, p.heads_q, p.len_q, p.len_kv});
}

void validate(const AttentionProblem& p, const AttentionTensors& t) {
    check_view("Q", t.q.dtype, t.q.shape, t.q.data, p.dtype, p.q_shape());
    check_view("K", t.k.dtype, t.k.shape, t.k.data, p.dtype, p.kv_shape());
    check_view("V", t.v.dtype, t.v.shape, t.v.data, p.dtype, p.kv_shape());
    check_view("O", t.o.dtype, t.o.shape, t.o.data, p.dtype, p.q_shape());
}

void attention(const Implementation& implementation, const AttentionProblem& problem,
               const AttentionTensors& tensors, std::span<std::byte> workspace,
               const Launch& launch) {
    validate(problem);
    validate(problem, tensors);
    if (const std::string reason = implementation.why_unsupported(problem); !reason.empty())
        throw Unsupported(fmt::format("{}: {}", implementation.name, reason));
    const std::size_t needed = implementation.workspace_bytes(problem, launch);
    if (workspace.size() < needed)
        throw std::invalid_argument(fmt::format("{}: workspace has {} bytes, {} needed for {}",
                                                implementation.name, workspace.size(), needed,
                                                describe(problem)));
    constexpr std::uintptr_t ALIGNMENT = 64;
    if (needed > 0 && reinterpret_cast<std::uintptr_t>(workspace.data()) % ALIGNMENT != 0)
        throw std::invalid_argument(
            fmt::format("{}: workspace is not {}-byte aligned", implementation.name, ALIGNMENT));
    if (problem.q_shape().count() == 0) return;  // no output element exists
    implementation.run(problem, tensors, workspace, launch);
}

}  // namespace fa
