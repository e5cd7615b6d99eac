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

/// Adds up what is done for each block of queries, over all heads. `bytes` maps the rows of the
/// block, the keys of its visible tiles and the number of these tiles to the bytes moved.
template <class Bytes>
Cost sum_over_q_blocks(const AttentionProblem& p, TileSize tiles, const Bytes& bytes) {
    Cost cost;
    for (std::int64_t first = 0; first < p.len_q; first += tiles.q) {
        const std::int64_t last = std::min(first + tiles.q, p.len_q) - 1;
        const double rows = real(last - first + 1);
        const std::int64_t kv_tiles = (p.visible_keys(last) + tiles.kv - 1) / tiles.kv;
        const double keys = real(std::min(kv_tiles * tiles.kv, p.len_kv));

        cost.bytes += bytes(rows, keys, real(kv_tiles));
        cost.flops += 4 * rows * keys * real(p.head_dim);
        for (std::int64_t i = first; i <= last; ++i) cost.exponentials += real(p.visible_keys(i));
        cost.exponentials += rows * real(kv_tiles);  // exp(m_old − m_new)
    }
    return {cost.bytes * heads(p), cost.flops * heads(p), cost.exponentials * heads(p)};
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
    std::int64_t fits = -1, too_long = LONGEST_LENGTH + 1;
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

TileSize flash_tiles(std::int64_t on_chip_elements, std::int64_t head_dim) {
    const std::int64_t kv =
        std::max<std::int64_t>(1, (on_chip_elements + 4 * head_dim - 1) / (4 * head_dim));
    return {.q = std::min(kv, head_dim), .kv = kv};
}

// [blocked]
Cost q_outer_cost(const AttentionProblem& p, TileSize tiles) {
    const double row_bytes = real(p.head_dim) * element_bytes(p.dtype);
    return sum_over_q_blocks(p, tiles, [&](double rows, double keys, double /*kv_tiles*/) {
        return 2 * rows * row_bytes     // read Q, write O
               + 2 * keys * row_bytes;  // read K and V
    });
}

Cost kv_outer_cost(const AttentionProblem& p, TileSize tiles) {
    const double row_bytes = real(p.head_dim) * element_bytes(p.dtype);
    const double running_bytes = (real(p.head_dim) + 2) * FLOAT_BYTES;  // O, m and l of a row
    Cost cost = sum_over_q_blocks(p, tiles, [&](double rows, double /*keys*/, double kv_tiles) {
        return kv_tiles * rows * (row_bytes + 2 * running_bytes)  // read Q; read and write O, m, l
               + rows * running_bytes                             // zeroed at first
               + rows * (running_bytes + row_bytes);              // the last pass
    });
    if (p.len_q > 0) cost.bytes += heads(p) * 2 * real(p.len_kv) * row_bytes;  // read K and V
    return cost;
}
// [blocked]

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
