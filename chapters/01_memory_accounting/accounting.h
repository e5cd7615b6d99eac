#pragma once
/// @file
/// The tables of chapter 1 that need no run: what attention holds, moves and computes, by formula.

#include <cstdint>
#include <vector>

#include "common/cost_model.h"
#include "common/program.h"

namespace fa {

/// What is asked for on the command line.
struct AccountingOptions {
    AttentionProblem shape{
        .batch = 4, .heads_q = 12, .heads_kv = 12, .head_dim = 64, .dtype = DType::bf16};
    DType score_dtype = DType::bf16;    ///< of S and P of the naive way
    std::vector<std::int64_t> lengths;  ///< T, for queries and keys alike
    std::vector<double> memories;       ///< bytes to fit into
    std::int64_t layers = 12;           ///< of the model, for the key/value cache
    std::int64_t on_chip_bytes = 227 * 1024;
    Ceilings ceilings = h200_ceilings();

    /// The problem at length T.
    AttentionProblem at(std::int64_t length) const;
    /// M, the on-chip memory in elements of the shape's type.
    std::int64_t on_chip_elements() const;
    /// Tiles for M elements: as FlashAttention's Algorithm 1 has them, K and V outside ...
    TileSize tiles_kv_outside() const;
    /// ... and the other way round, Q outside: as many rows of Q as fit, K and V streaming by.
    TileSize tiles_q_outside() const;
};

/// Bytes of Q, K, V, O, of S and P, and of the key/value cache, for each T.
void show_held(const AccountingOptions& options);

/// FLOPs, exponentials and bytes moved, naive and blocked, for each T.
void show_moved(const AccountingOptions& options);

/// The time of each at the ceilings.
void show_times(const AccountingOptions& options);

/// The longest T that fits into each memory, with a check that it is the longest.
void show_longest(Program& program, const AccountingOptions& options);

/// All figures of the tables, one object for each T.
nlohmann::ordered_json to_json(const AccountingOptions& options);

}  // namespace fa
