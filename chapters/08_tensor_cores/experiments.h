#pragma once
/// @file
/// What ch08_tensor_cores shows: each function prints one section and adds its checks and results.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "chapters/07_gpt2_124m/gpt2_model.h"
#include "common/program.h"

namespace fa {

/// A network and the tokens that go through it.
struct NetworkText {
    std::string name;  ///< the folder's
    Gpt2 model;
    std::vector<std::int32_t> tokens;  ///< as many as are used
};

/// The flags of the program.
struct TensorCoreOptions {
    AttentionProblem shape{.batch = 4, .heads_q = 12, .heads_kv = 12, .head_dim = 64};
    std::vector<std::int64_t> lengths;  ///< timed
    std::int64_t counted_length = 256;  ///< on the executor
    std::filesystem::path model;        ///< whose activations are looked at
    std::filesystem::path tokens;       ///< a shard, or text
    std::int64_t sequences = 2, context = 256;
    int runs = 20;
};

/// Which lane holds which element of A, B and C; on the GPU, too, if there is one.
void show_fragments(Program& program);

/// The banks of the rows that ldmatrix reads, and what each step's accesses take, counted.
void show_banks(Program& program, const TensorCoreOptions& options);

/// Registers, shared memory and occupancy of each step and each size of the last kernel.
void show_resources(Program& program, const TensorCoreOptions& options);

/// How busy each unit is with a tile; times of the steps, predicted and measured.
void show_steps(Program& program, const TensorCoreOptions& options);

/// The last kernel without one of its ideas.
void show_ablations(Program& program, const TensorCoreOptions& options);

/// Reads what show_growth() looks at.
/// @throws UsageError if the network or the tokens are too short for the flags;
///         std::runtime_error naming the file that is wrong
NetworkText read_network(const TensorCoreOptions& options);

/// How much maxima grow from tile to tile, for random inputs and for a network's.
void show_growth(Program& program, const TensorCoreOptions& options, const NetworkText& text);

/// Errors against fp64, on the executor and, if there is one, on the GPU.
void show_errors(Program& program, const TensorCoreOptions& options);

}  // namespace fa
