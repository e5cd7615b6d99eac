#pragma once
/// @file
/// The cost model: what an attention must hold, move and compute, before anything is run. Programs
/// print it beside what they measure.
///
/// Everything is counted for the forward pass and all of batch and heads. Byte counts are doubles:
/// exact below 2^53, and free of overflow for lengths that no machine can hold.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/attention.h"

namespace fa {

// --- what is held
// ---------------------------------------------------------------------------------

/// Bytes of Q, K, V and O together.
double qkvo_bytes(const AttentionProblem& problem);

/// Bytes of one score matrix [batch, heads_q, len_q, len_kv]. The naive way holds two, S and P.
double score_bytes(const AttentionProblem& problem, DType score_dtype);

/// Bytes of the key/value cache of a model: K and V of `len_kv` tokens in each of its layers.
double kv_cache_bytes(const AttentionProblem& problem, std::int64_t layers);

/// The largest length T >= 0 with bytes_at(T) <= budget, for bytes_at that grows with T; found by
/// bisection, exact.
/// @return −1 if not even bytes_at(0) fits; at most 2^40
std::int64_t largest_length(double budget, const std::function<double(std::int64_t)>& bytes_at);

// --- what is moved and computed
// -------------------------------------------------------------------

/// Work and traffic of one kernel.
struct Cost {
    double bytes = 0;         ///< moved between memory and chip, reads and writes
    double flops = 0;         ///< of the matrix products, two per multiply-add
    double exponentials = 0;  ///< of the softmax

    Cost& operator+=(const Cost& other);
};

/// The three steps of naive attention, each a kernel of its own: S = QKᵀ, P = softmax(S), O = PV.
/// FlashAttention (Dao et al. 2022), Algorithm 0. Moves Θ(Td + T²): Q, K, V and O once, S and P
/// once written and once read each. A causal mask saves nothing here: the full square is computed,
/// then masked.
std::array<Cost, 3> naive_cost(const AttentionProblem& problem, DType score_dtype);

/// Which loop of blocked attention is outside.
enum class LoopOrder {
    kv_outer,  ///< FlashAttention: K and V loaded once, O, m and l rewritten for each K/V block
    q_outer,   ///< FlashAttention-2: O written once, K and V loaded again for each Q block
};
std::string_view name_of(LoopOrder order);

/// Rows of the tiles that are on chip at one time.
struct TileSize {
    std::int64_t q = 64;   ///< Br, rows of Q
    std::int64_t kv = 64;  ///< Bc, rows of K and V
};

/// The tiles that FlashAttention gives to `on_chip_bytes` of memory, Algorithm 1, line 1, in
/// elements of `dtype`: Bc = M/4d and Br = min(Bc, d), at least 1, rounded down so that they fit.
TileSize flash_tiles(double on_chip_bytes, std::int64_t head_dim, DType dtype);

/// Blocked attention in one kernel. Moves Θ(T²d²/M) for an on-chip memory of M elements (the same
/// paper, Theorem 2). Counted tile by tile: a causal tile that sees nothing is not loaded. The
/// exponentials are those of the visible scores and one correction per row and tile.
/// q_outer: Q and O once and the LSE written; K and V of every visible tile.
/// kv_outer: K and V once; O, m and l zeroed at first, then read and written for every visible tile
/// along with reading Q; O, m and l in fp32, since they are sums under way.
Cost flash_cost(const AttentionProblem& problem, TileSize tiles, LoopOrder order);

// --- what that takes
// ------------------------------------------------------------------------------

/// What a machine can do at best, each by itself.
struct Ceilings {
    std::string name;
    double bytes_per_s = 0;
    double flops_per_s = 0;
    double exponentials_per_s = 0;
};

/// One H200 as read on such a card: a device-to-device copy, a bf16 matrix product of 8192³, and 16
/// exponentials a clock on each of 132 SMs at 1.98 GHz.
Ceilings h200_ceilings();

/// Time of one kernel in which everything overlaps perfectly: the longest of the three parts.
double seconds_at(const Ceilings& ceilings, const Cost& cost);

/// The part that seconds_at() waits for: "memory", "products" or "exponentials".
std::string_view bound_of(const Ceilings& ceilings, const Cost& cost);

}  // namespace fa
