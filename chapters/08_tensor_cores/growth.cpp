#include "chapters/08_tensor_cores/growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "chapters/05_exp2/folded_scale.h"

namespace fa {
namespace {

constexpr std::int64_t BLOCK_N = 64, WARP_ROWS = 32;
constexpr double LAZY_EXPONENT = 8;

/// The largest exponent c·s of a row in each tile.
template <class T>
std::vector<double> tile_maxima(const AttentionProblem& p, const T* q, const View<const T>& k,
                                std::int64_t batch, std::int64_t head_kv, std::int64_t visible) {
    std::vector<double> maxima;
    const double c = static_cast<double>(p.effective_scale()) * static_cast<double>(LOG2_E);
    for (std::int64_t first = 0; first < visible; first += BLOCK_N) {
        double largest = -std::numeric_limits<double>::infinity();
        for (std::int64_t j = first; j < std::min(first + BLOCK_N, visible); ++j) {
            const T* key = k.row(batch, head_kv, j);
            float s = 0;
            for (std::int64_t d = 0; d < p.head_dim; ++d)
                s += static_cast<float>(q[d]) * static_cast<float>(key[d]);
            largest = std::max(largest, c * static_cast<double>(s));
        }
        maxima.push_back(largest);
    }
    return maxima;
}

/// One row through its tiles. @return for each tile, counted from the first key, whether the lazy
/// reference moved
std::vector<bool> follow(const std::vector<double>& maxima, Growth& growth) {
    std::vector<bool> moved(maxima.size());
    double m = -std::numeric_limits<double>::infinity(), reference = m;
    for (std::size_t n = maxima.size(); n-- > 0;) {
        ++growth.pairs;
        if (std::isfinite(m)) {
            const double by = std::max(0.0, maxima[n] - m);
            std::size_t range = 0;
            while (range < Growth::BOUNDS.size() && by > Growth::BOUNDS[range]) ++range;
            ++growth.count[range];
        }
        growth.classic_rescales += maxima[n] > m;
        m = std::max(m, maxima[n]);
        if (maxima[n] >= reference + LAZY_EXPONENT) {
            reference = maxima[n];
            moved[n] = true;
            ++growth.lazy_rescales;
        }
    }
    ++growth.rows;
    return moved;
}

}  // namespace

Growth& Growth::operator+=(const Growth& other) {
    for (std::size_t n = 0; n < count.size(); ++n) count[n] += other.count[n];
    rows += other.rows;
    pairs += other.pairs;
    classic_rescales += other.classic_rescales;
    lazy_rescales += other.lazy_rescales;
    warp_tiles += other.warp_tiles;
    warp_rescales += other.warp_rescales;
    return *this;
}

std::string Growth::range(std::size_t n) {
    if (n == 0) return "0";
    if (n == BOUNDS.size()) return fmt::format("over {:.0f}", BOUNDS.back());
    return fmt::format("{:.0f} to {:.0f}", BOUNDS[n - 1], BOUNDS[n]);
}

Growth growth_of(const AttentionProblem& p, const AttentionTensors& t) {
    return with_element_type(p.dtype, [&](auto element) {
        using T = decltype(element);
        const auto q = t.q.as<T>(), k = t.k.as<T>();
        Growth total;
        const std::int64_t blocks = (p.len_q + WARP_ROWS - 1) / WARP_ROWS;
        const std::int64_t all = p.batch * p.heads_q * blocks;
#pragma omp parallel
        {
            Growth own;
#pragma omp for schedule(dynamic)
            for (std::int64_t n = 0; n < all; ++n) {
                const std::int64_t head = n / blocks % p.heads_q, batch = n / blocks / p.heads_q;
                const std::int64_t first = n % blocks * WARP_ROWS;
                std::vector<bool> any;
                for (std::int64_t i = first; i < std::min(first + WARP_ROWS, p.len_q); ++i) {
                    const std::vector<bool> moved =
                        follow(tile_maxima<T>(p, q.row(batch, head, i), k, batch, p.head_kv(head),
                                              p.visible_keys(i)),
                               own);
                    any.resize(std::max(any.size(), moved.size()));
                    for (std::size_t tile = 0; tile < moved.size(); ++tile)
                        any[tile] = any[tile] || moved[tile];
                }
                own.warp_tiles += static_cast<std::int64_t>(any.size());
                own.warp_rescales += std::count(any.begin(), any.end(), true);
            }
#pragma omp critical
            total += own;
        }
        return total;
    });
}

}  // namespace fa
