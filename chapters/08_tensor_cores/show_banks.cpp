#include <fmt/format.h>

#include <string>
#include <string_view>

#include "chapters/04_cuda_tiled/multiprocessor.h"
#include "chapters/08_tensor_cores/experiments.h"
#include "chapters/08_tensor_cores/step_counts.h"
#include "common/text_table.h"

namespace fa {
namespace {

/// Where the eight rows of an 8 × 8 matrix lie, as 16-byte places of 128 bytes.
template <bool SWIZZLED>
std::string places(int chunk) {
    std::string text;
    for (int row = 0; row < 8; ++row)
        text += fmt::format("{:>3}", TileLayout<64, SWIZZLED>::offset(row, chunk) / 16 % 8);
    return text;
}

}  // namespace

void show_banks(Program& program, const TensorCoreOptions& options) {
    print_heading("Banks");
    fmt::print(
        "Rows of 128 bytes: 32 banks, or eight places of 16 bytes. ldmatrix reads a chunk of each "
        "of "
        "eight rows.\n\n                   place of row   0  1  2  3  4  5  6  7\n");
    for (int chunk : {0, 1, 5})
        fmt::print("chunk {}     not swizzled      {}\n            swizzled          {}\n", chunk,
                   places<false>(chunk), places<true>(chunk));
    fmt::print("\n");

    const AttentionProblem p = counted_problem(options);
    fmt::print("{}, counted by the executor\n\n", describe(p));
    TextTable table({"step", "accesses of a warp", "clocks without conflicts", "clocks", "lost",
                     "clocks per tile"});
    for_each_counted([&]<class Kernel, class Config>(std::string_view name) {
        const executor::Counters c = count<Kernel, Config>(p, program.seed);
        const double lost =
            static_cast<double>(c.bank_conflicts()) / static_cast<double>(c.shared_wavefronts);
        const auto tiles = static_cast<double>(tiles_of(p, Config::BLOCK_M, Config::BLOCK_N));
        table.add({std::string(name), fmt::format("{}", c.shared_instructions),
                   fmt::format("{}", c.shared_ideal), fmt::format("{}", c.shared_wavefronts),
                   fmt::format("{:.1f} %", 100 * lost),
                   fmt::format("{:.0f}", static_cast<double>(c.shared_wavefronts) / tiles)});
        program.results.extras["banks"].push_back({{"step", name},
                                                   {"instructions", c.shared_instructions},
                                                   {"ideal", c.shared_ideal},
                                                   {"wavefronts", c.shared_wavefronts}});
        if (name == "mma" || name == "ldmatrix")
            program.checks.at_least(fmt::format("{}, not swizzled: share of clocks lost", name),
                                    lost, 0.5);
        else
            program.checks.equal(fmt::format("{}: clocks lost to conflicts", name),
                                 static_cast<double>(c.bank_conflicts()), 0);
    });
    fmt::print("{}", table.str());
}

}  // namespace fa
