#include "common/cost_model.h"

#include <algorithm>

namespace fa {
namespace {

/// m, l, LSE and sums under way are fp32 whatever the inputs are.
constexpr double FLOAT_BYTES = 4;

double real(std::int64_t n) {
    return static_cast<double>(n);
}

double element_bytes(DType dtype) {
    return static_cast<double>(size_of(dtype));
}

double heads(const AttentionProblem& p) {
    return real(p.batch) * real(p.heads_q);
}

double scores(const AttentionProblem& p) {
    return heads(p) * real(p.len_q) * real(p.len_kv);
}

}  // namespace

double qkvo_bytes(const AttentionProblem& p) {
    const double q = heads(p) * real(p.len_q) * real(p.head_dim);
    const double k = real(p.batch) * real(p.heads_kv) * real(p.len_kv) * real(p.head_dim);
    return 2 * (q + k) * element_bytes(p.dtype);
}

double score_bytes(const AttentionProblem& p, DType score_dtype) {
    return scores(p) * element_bytes(score_dtype);
}

double kv_cache_bytes(const AttentionProblem& p, std::int64_t layers) {
    return 2 * real(layers) * real(p.batch) * real(p.heads_kv) * real(p.len_kv) * real(p.head_dim) *
           element_bytes(p.dtype);
}

std::int64_t largest_length(double budget, const std::function<double(std::int64_t)>& bytes_at) {
    std::int64_t fits = -1, too_long = (std::int64_t{1} << 40) + 1;
    while (too_long - fits > 1) {
        const std::int64_t middle = fits + (too_long - fits) / 2;
        (bytes_at(middle) <= budget ? fits : too_long) = middle;
    }
    return fits;
}

Cost& Cost::operator+=(const Cost& other) {
    bytes += other.bytes;
    flops += other.flops;
    exponentials += other.exponentials;
    return *this;
}

// [naive]
std::array<Cost, 3> naive_cost(const AttentionProblem& p, DType score_dtype) {
    const double s = score_bytes(p, score_dtype);
    const double q = heads(p) * real(p.len_q) * real(p.head_dim) * element_bytes(p.dtype);
    const double k = heads(p) * real(p.len_kv) * real(p.head_dim) * element_bytes(p.dtype);
    const double product = 2 * scores(p) * real(p.head_dim);
    return {{
        {.bytes = q + k + s, .flops = product},       // read Q and K, write S
        {.bytes = s + s, .exponentials = scores(p)},  // read S, write P
        {.bytes = s + k + q, .flops = product},       // read P and V, write O
    }};
}
// [naive]

std::string_view name_of(LoopOrder order) {
    return order == LoopOrder::kv_outer ? "K/V outside" : "Q outside";
}

TileSize flash_tiles(double on_chip_bytes, std::int64_t head_dim, DType dtype) {
    const double rows = on_chip_bytes / element_bytes(dtype) / (4 * real(head_dim));
    const std::int64_t kv = std::max<std::int64_t>(1, static_cast<std::int64_t>(rows));
    return {.q = std::min(kv, head_dim), .kv = kv};
}

Cost flash_cost(const AttentionProblem& p, TileSize tiles, LoopOrder order) {
    const double d = real(p.head_dim), element = element_bytes(p.dtype);
    const double statistics = 2 * FLOAT_BYTES;  // m and l of a row
    Cost cost;                                  // of one head
    std::int64_t longest = 0;                   // keys that some row sees
    for (std::int64_t first = 0; first < p.len_q; first += tiles.q) {
        const std::int64_t last = std::min(first + tiles.q, p.len_q) - 1;
        const double rows = real(last - first + 1);
        const std::int64_t visited = (p.visible_keys(last) + tiles.kv - 1) / tiles.kv;
        const std::int64_t keys = std::min(visited * tiles.kv, p.len_kv);
        longest = std::max(longest, keys);

        if (order == LoopOrder::q_outer) {
            cost.bytes += rows * d * element + 2 * real(keys) * d * element;  // Q; K and V
            cost.bytes += rows * d * element + rows * FLOAT_BYTES;            // O, LSE
        } else {
            cost.bytes += rows * (d * FLOAT_BYTES + statistics);  // O, m, l zeroed
            const double per_tile = rows * d * element + 2 * rows * (d * FLOAT_BYTES + statistics);
            cost.bytes += real(visited) * per_tile;  // Q read; O, m, l read and written
        }
        cost.flops += 4 * rows * real(keys) * d;
        for (std::int64_t i = first; i <= last; ++i) cost.exponentials += real(p.visible_keys(i));
        cost.exponentials += rows * real(visited);  // exp(m_old − m_new)
    }
    if (order == LoopOrder::kv_outer) cost.bytes += 2 * real(longest) * d * element;  // K and V
    return {cost.bytes * heads(p), cost.flops * heads(p), cost.exponentials * heads(p)};
}

Ceilings h200_ceilings() {
    return {.name = "H200",
            .bytes_per_s = 4.25e12,
            .flops_per_s = 805e12,
            .exponentials_per_s = 16 * 132 * 1.98e9};
}

double seconds_at(const Ceilings& ceilings, const Cost& cost) {
    return std::max({cost.bytes / ceilings.bytes_per_s, cost.flops / ceilings.flops_per_s,
                     cost.exponentials / ceilings.exponentials_per_s});
}

std::string_view bound_of(const Ceilings& ceilings, const Cost& cost) {
    const double longest = seconds_at(ceilings, cost);
    if (cost.bytes / ceilings.bytes_per_s == longest) return "memory";
    return cost.flops / ceilings.flops_per_s == longest ? "products" : "exponentials";
}

}  // namespace fa
