#pragma once
/// @file
/// Which block sizes are the fastest, by trying them: the measurement behind the kernels' defaults.

#include <string>
#include <vector>

#include "chapters/06_benchmark/timed_case.h"
#include "common/cost_model.h"
#include "common/program.h"

namespace fa {

/// A kernel with block sizes of its own, as an implementation that can be timed.
struct Candidate {
    Implementation implementation;
    TileSize tiles;
    std::string resources;  ///< what it takes: threads, registers, shared memory
    bool is_default = false;
};

/// A kernel in several sizes.
struct Family {
    std::string name;
    std::vector<Candidate> candidates;
};

/// The families there are for a device.
std::vector<Family> block_size_families(Device device);

/// Times all candidates of all families at some lengths, prints them with what explains the times,
/// and checks that the default is close to the best at the last length. Sizes that refuse the
/// problem are left out. On a CPU one thread runs them, whatever the options say.
/// @param families of the device
/// @param problem all but the lengths
void show_block_sizes(Program& program, const std::vector<Family>& families,
                      const AttentionProblem& problem, const std::vector<std::int64_t>& lengths,
                      Device device, const CaseOptions& options);

#ifdef FA_CUDA_ENABLED
/// The fused kernels in the sizes of a compile-time table, bf16 with head_dim up to 64.
std::vector<Family> cuda_block_size_families();
#endif

}  // namespace fa
