#pragma once
/// @file
/// Which unit of a GPU's multiprocessor has how much to do for one tile, in chapter 4's kernel and
/// in chapter 5's: what the change of the exponential can save at most.

#include <array>
#include <cstdint>
#include <string_view>

namespace fa {

/// How a kernel computes its weights.
enum class Exponential { exp, exp2 };

/// Instructions of one thread for one tile without mask, by what they are. Loading K and V, and the
/// counters and addresses of the loops, are left out.
struct TileInstructions {
    double multiply_adds = 0;  ///< FFMA, FMUL and FADD: one pipe
    double exponentials = 0;   ///< MUFU
    double comparisons = 0;    ///< FMNMX, FSETP and FSEL
    double shared = 0;         ///< LDS and STS
    double shuffles = 0;       ///< SHFL

    double all() const { return multiply_adds + exponentials + comparisons + shared + shuffles; }
};

/// What the model needs to know of a kernel's tiles (RegisterTiledConfig of chapter 4).
struct TileShape {
    int head_dim, block_m, block_n, threads, threads_x;
    int rows, keys, channels;  ///< of one thread
};

/// The tiles of the register-tiled kernels for a head dimension, where shared memory allows them.
TileShape tile_shape(std::int64_t head_dim);

/// Counted by hand from the source of the two kernels, instruction by instruction.
TileInstructions tile_instructions(const TileShape& shape, Exponential exponential);

/// Of the softmax alone.
TileInstructions softmax_instructions(const TileShape& shape, Exponential exponential);

/// Clocks that each unit of a multiprocessor is busy with one tile of one block.
struct Unit {
    std::string_view name;
    double per_clock;  ///< threads' instructions that it takes in a clock; issue: of all kinds
    double clocks_exp, clocks_exp2;
};

/// @param shared_wavefronts clocks of the shared memory for one tile of a block
std::array<Unit, 5> units(const TileShape& shape, double shared_wavefronts);

/// The busiest unit. @return of the five, the one with the most clocks in the exp kernel
const Unit& busiest(const std::array<Unit, 5>& units);

/// Wavefronts of shared memory for one tile of a block, with the stores that bring K and V: two
/// runs of the exp2 kernel on the executor that differ by one tile. The other kernel makes the same
/// accesses.
double count_shared_wavefronts(std::int64_t head_dim);

}  // namespace fa
