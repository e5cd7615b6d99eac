#include "chapters/05_exp2/unit_model.h"

#include <algorithm>

#include "chapters/04_cuda_tiled/executor_entry.h"
#include "chapters/05_exp2/exp2_host.h"
#include "common/attention_data.h"

namespace fa {
namespace {

constexpr double WARP = 32;

TileInstructions operator+(const TileInstructions& a, const TileInstructions& b) {
    return {a.multiply_adds + b.multiply_adds, a.exponentials + b.exponentials,
            a.comparisons + b.comparisons, a.shared + b.shared, a.shuffles + b.shuffles};
}
TileInstructions operator*(double n, const TileInstructions& a) {
    return {n * a.multiply_adds, n * a.exponentials, n * a.comparisons, n * a.shared,
            n * a.shuffles};
}

// [exponential]
/// One weight. exp(s − m): subtract; multiply by log2 e; compare with −126 and, below, halve (so
/// that the unit, which flushes subnormal results to 0, gives their root); MUFU; square if halved.
/// The branches are predicates: every instruction is issued.
constexpr TileInstructions EXP_WEIGHT{.multiply_adds = 4, .exponentials = 1, .comparisons = 1};
/// 2^(c·s − c·m), subnormal results flushed: multiply-add; MUFU.
constexpr TileInstructions EXP2_WEIGHT{.multiply_adds = 1, .exponentials = 1};

/// A row's correction and shift. exp: the correction is one more weight; −∞ is compared and
/// replaced.
constexpr TileInstructions EXP_ROW = {.multiply_adds = 4, .exponentials = 1, .comparisons = 3};
/// exp2: subtract, multiply, MUFU; c·m once to choose the constant and once with it; −∞ compared
/// and replaced; two comparisons and a selection for the constant.
constexpr TileInstructions EXP2_ROW = {.multiply_adds = 4, .exponentials = 1, .comparisons = 5};
// [exponential]

}  // namespace

TileShape tile_shape(std::int64_t head_dim) {
    TileShape shape{};
    std::size_t need = 0;
    RegisterTiledKernel::with_config(head_dim, EXECUTOR_SHARED_LIMIT, need, [&]<class Config>() {
        shape = {Config::HEAD_DIM,  Config::BLOCK_M, Config::BLOCK_N, Config::THREADS,
                 Config::THREADS_X, Config::ROWS,    Config::KEYS,    Config::CHANNELS};
    });
    return shape;
}

TileInstructions softmax_instructions(const TileShape& s, Exponential exponential) {
    const bool exp2 = exponential == Exponential::exp2;
    int steps = 0;  // of the reduction along a row: each a shuffle and a maximum
    for (int lanes = 1; lanes < s.threads_x; lanes *= 2) ++steps;
    // Each score: the maximum, the sum, the store of P. Each row: the reduction and the maximum so
    // far, the sum's correction, and that of O.
    const TileInstructions score{.multiply_adds = 1, .comparisons = 1, .shared = 1};
    const TileInstructions row{
        .multiply_adds = 1.0 + s.channels, .comparisons = 1.0 + steps, .shuffles = 1.0 * steps};
    return s.rows * (s.keys * (score + (exp2 ? EXP2_WEIGHT : EXP_WEIGHT)) + row +
                     (exp2 ? EXP2_ROW : EXP_ROW));
}

TileInstructions tile_instructions(const TileShape& s, Exponential exponential) {
    // Four channels, or four keys, by one load.
    const double scores = 1.0 * s.rows * s.keys * s.head_dim;
    const double weighted_sum = 1.0 * s.rows * s.block_n * s.channels;
    const double loads = s.head_dim / 4.0 * (s.keys + s.rows) + s.block_n / 4.0 * s.rows +
                         s.block_n * s.channels / 4.0;
    return softmax_instructions(s, exponential) +
           TileInstructions{.multiply_adds = scores + weighted_sum, .shared = loads};
}

std::array<Unit, 5> units(const TileShape& shape, double shared_wavefronts) {
    const TileInstructions exp = tile_instructions(shape, Exponential::exp);
    const TileInstructions exp2 = tile_instructions(shape, Exponential::exp2);
    const auto unit = [&](std::string_view name, double per_clock, double TileInstructions::*what) {
        return Unit{name, per_clock, exp.*what * shape.threads / per_clock,
                    exp2.*what * shape.threads / per_clock};
    };
    // Threads' results per clock and multiprocessor for compute capability 9.0: CUDA C++
    // Programming Guide, "Arithmetic Instructions"; comparisons at half the rate of sums. Four
    // schedulers issue one warp instruction each. Shared memory serves 32 words of 4 bytes.
    constexpr double ISSUE = 4 * WARP;
    return {{
        unit("multiply-add", 128, &TileInstructions::multiply_adds),
        unit("exponential", 16, &TileInstructions::exponentials),
        unit("comparison", 64, &TileInstructions::comparisons),
        {"shared memory", 32, shared_wavefronts, shared_wavefronts},
        {"issue", ISSUE, exp.all() * shape.threads / ISSUE, exp2.all() * shape.threads / ISSUE},
    }};
}

const Unit& busiest(const std::array<Unit, 5>& units) {
    return *std::ranges::max_element(units, {}, &Unit::clocks_exp);
}

double count_shared_wavefronts(std::int64_t head_dim) {
    const TileShape shape = tile_shape(head_dim);
    const auto wavefronts = [&](int tiles) {
        const AttentionProblem p{.len_q = shape.block_m,
                                 .len_kv = tiles * shape.block_n,
                                 .head_dim = head_dim,
                                 .dtype = DType::bf16};
        AttentionData<BFloat16> data(p, 1);
        return static_cast<double>(
            run_on_executor<Exp2Kernel>(p, data.tensors(), {.count_banks = true})
                .shared_wavefronts);
    };
    return wavefronts(2) - wavefronts(1);
}

}  // namespace fa
