#include "common/attention.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

namespace fa {

float AttentionProblem::effective_scale() const {
    return scale ? *scale : static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

int Launch::thread_count() const {
    return threads > 0 ? threads : omp_get_max_threads();
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

std::string_view name_of(Device device) {
    switch (device) {
        case Device::cpu: return "cpu";
        case Device::cuda: return "cuda";
        case Device::executor: return "executor";
    }
    return "?";
}

namespace {

/// Kernels that work in base 2 multiply the scale by log2 e, and that must fit fp32, too.
constexpr float LARGEST_SCALE = 0x1p126f;

/// Throws unless the product of the extents stays within 2^60, so that the bytes of so many fp32
/// numbers, and offsets among them, fit into 64 bits with a sign. An extent of 0 is passed over:
/// the product of the others must still be computable, whatever the order of the factors.
void check_product(std::string_view what, std::initializer_list<std::int64_t> extents) {
    constexpr std::int64_t LIMIT = std::int64_t{1} << 60;
    std::int64_t product = 1;
    for (std::int64_t extent : extents) {
        if (extent == 0) continue;
        if (product > LIMIT / extent)
            throw std::invalid_argument(
                fmt::format("attention problem: {} has more than 2^60 elements", what));
        product *= extent;
    }
}

void check_aligned(std::string_view name, const void* data, std::size_t element_bytes) {
    if (reinterpret_cast<std::uintptr_t>(data) % element_bytes != 0)
        throw std::invalid_argument(fmt::format(
            "attention: {} is not aligned to its elements of {} bytes", name, element_bytes));
}

template <class Void>
void check_view(std::string_view name, const AnyView<Void>& view, DType dtype, const Shape& want) {
    const Shape& shape = view.shape;
    if (view.dtype != dtype)
        throw std::invalid_argument(fmt::format("attention: {} is {}, the problem says {}", name,
                                                name_of(view.dtype), name_of(dtype)));
    if (shape != want)
        throw std::invalid_argument(fmt::format(
            "attention: {} has shape [{}, {}, {}, {}], the problem needs [{}, {}, {}, {}]", name,
            shape.batch, shape.heads, shape.tokens, shape.dim, want.batch, want.heads, want.tokens,
            want.dim));
    if (want.count() == 0) return;
    if (view.data == nullptr)
        throw std::invalid_argument(fmt::format("attention: {} has no memory", name));
    check_aligned(name, view.data, size_of(dtype));
    const Strides& s = view.strides;
    if (s.batch < 0 || s.head < 0 || s.token < 0)
        throw std::invalid_argument(
            fmt::format("attention: {} has strides [{}, {}, {}], none may be negative", name,
                        s.batch, s.head, s.token));
}

/// One dimension of an output: how many entries, how far apart in elements.
struct Axis {
    std::int64_t extent, stride;
};

/// Throws unless the rows of `row_length` contiguous elements that an output consists of lie clear
/// of one another: sorted by stride, each axis must step over all that the inner ones span.
/// Forgotten (zero) strides would have threads race for the same elements.
void check_no_overlap(std::string_view name, std::int64_t row_length, std::array<Axis, 3> axes) {
    std::sort(axes.begin(), axes.end(),
              [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
    std::int64_t span = row_length;
    for (const Axis& axis : axes) {
        if (axis.extent <= 1) continue;
        if (axis.stride < span)
            throw std::invalid_argument(
                fmt::format("attention: {} overlaps itself: {} entries at a stride of {} elements, "
                            "each of which spans {}",
                            name, axis.extent, axis.stride, span));
        std::int64_t length = 0;
        if (__builtin_mul_overflow(axis.extent - 1, axis.stride, &length) ||
            __builtin_add_overflow(span, length, &span))
            throw std::invalid_argument(
                fmt::format("attention: {} reaches over more than 2^63 elements: {} entries at a "
                            "stride of {}",
                            name, axis.extent, axis.stride));
    }
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
    if (p.scale && !(std::fabs(*p.scale) <= LARGEST_SCALE))
        throw std::invalid_argument(fmt::format(
            "attention problem: scale is {}, must be at most 2^126 in magnitude", *p.scale));
    check_product("Q", {p.batch, p.heads_q, p.len_q, p.head_dim});
    check_product("K", {p.batch, p.heads_kv, p.len_kv, p.head_dim});
    check_product("S", {p.batch, p.heads_q, p.len_q, p.len_kv});
}

void validate(const AttentionProblem& p, const AttentionTensors& t) {
    check_view("Q", t.q, p.dtype, p.q_shape());
    check_view("K", t.k, p.dtype, p.kv_shape());
    check_view("V", t.v, p.dtype, p.kv_shape());
    check_view("O", t.o, p.dtype, p.q_shape());
    if (p.q_shape().count() == 0) return;
    const Strides& o = t.o.strides;
    check_no_overlap("O", p.head_dim,
                     {{{p.batch, o.batch}, {p.heads_q, o.head}, {p.len_q, o.token}}});
    if (t.lse.data == nullptr) return;
    check_aligned("LSE", t.lse.data, sizeof(float));
    check_no_overlap("LSE", p.len_q,
                     {{{p.batch, t.lse.stride_batch}, {p.heads_q, t.lse.stride_head}, {1, 0}}});
}

void attention(const Implementation& implementation, const AttentionProblem& problem,
               const AttentionTensors& tensors, std::span<std::byte> workspace,
               const Launch& launch) {
    validate(problem);
    validate(problem, tensors);
    if (launch.threads < 0)
        throw std::invalid_argument(
            fmt::format("attention: {} threads asked for, must be 0 (as many as there are) or more",
                        launch.threads));
    if (const std::string reason = implementation.why_unsupported(problem); !reason.empty())
        throw Unsupported(fmt::format("{}: {}", implementation.name, reason));
    if (implementation.why_tensors_unsupported != nullptr)
        if (const std::string reason = implementation.why_tensors_unsupported(problem, tensors);
            !reason.empty())
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
