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

// --- what is held ---

/// Bytes of Q, K, V and O together.
double qkvo_bytes(const AttentionProblem& problem);

/// Bytes of one score matrix [batch, heads_q, len_q, len_kv]. The naive way holds two, S and P.
double score_bytes(const AttentionProblem& problem, DType score_dtype);

/// Bytes of the key/value cache of a model: K and V of `len_kv` tokens in each of its layers.
double kv_cache_bytes(const AttentionProblem& problem, std::int64_t layers);

/// More tokens than any memory holds.
constexpr std::int64_t LONGEST_LENGTH = std::int64_t{1} << 40;

/// The largest length T >= 0 with bytes_at(T) <= budget, for bytes_at that grows with T; found by
/// bisection, exact.
/// @return −1 if not even bytes_at(0) fits; at most LONGEST_LENGTH
std::int64_t largest_length(double budget, const std::function<double(std::int64_t)>& bytes_at);

// --- what is moved and computed ---

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

/// Rows of the tiles that are on chip at one time.
struct TileSize {
    std::int64_t q = 64;   ///< Br, rows of Q
    std::int64_t kv = 64;  ///< Bc, rows of K and V
};

/// The tiles that FlashAttention gives to an on-chip memory of M elements: Bc = ⌈M/4d⌉ and
/// Br = min(Bc, d), the same paper, Algorithm 1, line 1.
TileSize flash_tiles(std::int64_t on_chip_elements, std::int64_t head_dim);

/// Blocked attention in one kernel, Q outside (FlashAttention-2, Dao 2023, Algorithm 1): reads Q
/// and writes O once, and reads K and V again for each block of Q. Counted tile by tile: a causal
/// tile that sees nothing is not loaded, a tile on the diagonal is computed in full. The
/// exponentials are those of the visible scores, and a correction for each row and tile. LSE is
/// left out: it is a d-th of O.
Cost q_outer_cost(const AttentionProblem& problem, TileSize tiles);

/// Blocked attention with K and V outside (FlashAttention, Algorithm 1): reads K and V once, and
/// for each block of them reads Q again and rewrites O, m and l, in fp32 since they are sums under
/// way; it zeroes these at first, and at the end reads them once more, divides and writes O. With
/// tiles for M elements it moves Θ(T²d²/M) elements (Theorem 2).
Cost kv_outer_cost(const AttentionProblem& problem, TileSize tiles);

// --- what that takes ---

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
