#include "chapters/09_hopper/hopper_model.h"

#include <algorithm>
#include <queue>
#include <vector>

#include "chapters/04_cuda_tiled/multiprocessor.h"
#include "chapters/08_tensor_cores/tensor_core_support.h"
#include "chapters/09_hopper/executor_entries.h"
#include "chapters/09_hopper/hopper_host.h"
#include "chapters/09_hopper/ladder_host.h"

namespace fa {
namespace {

/// Sizes of a kernel's type; what it does with them is for the caller to say.
template <class Config>
ModelledStep sizes(std::string name) {
    return {.name = std::move(name),
            .warpgroups = Config::WARPGROUPS,
            .block_n = Config::BLOCK_N,
            .head_dim = Config::HEAD_DIM,
            .persistent = Config::PERSISTENT};
}

/// Calls `use(first_q, times)` for all tiles in the order in which they are handed out
/// (SectionPosition), alike ones together.
template <class Use>
void for_each_tile(const ModelledStep& step, const AttentionProblem& p, Use&& use) {
    const std::int64_t heads = p.batch * p.heads_q, block_m = step.block_m();
    const std::int64_t in_section = heads_of_section(p, PretendedHopper::L2_BYTES);
    const std::int64_t last = (p.len_q - 1) / block_m;
    for (std::int64_t head = 0; head < heads; head += in_section)
        for (std::int64_t nth = 0; nth <= last; ++nth)
            use((p.causal ? last - nth : nth) * block_m, std::min(in_section, heads - head));
}

}  // namespace

double UnitClocks::softmax() const {
    return std::max({exponentials, multiply_adds, comparisons, issue});
}

double UnitClocks::busiest() const {
    return std::max({tensor, shared, softmax()});
}

// [unit-clocks]
UnitClocks unit_clocks(const ModelledStep& step) {
    const double queries = step.block_m(), keys = step.block_n, channels = step.head_dim;
    const double weights = queries * keys;
    const bool always = step.rescale == Rescale::always;
    // Of one thread: instructions for each weight.
    const double multiply_adds = weights                                 // minus the reference
                                 + weights                               // the sum
                                 + (always ? queries * channels : 0.0);  // O rescaled
    // A maximum takes in one score, the lazy one's two; and two weights are converted at a time.
    const double maxima = always ? weights : step.rescale == Rescale::lazy ? weights / 2 : 0.0;
    const double comparisons = maxima + weights / 2;
    // A warpgroup reads its Q, and all of K and V; TMA writes K and V once.
    const double bytes =
        2 * (step.warpgroups * (64 * channels + 2 * keys * channels) + 2 * keys * channels);
    return {.tensor = 4 * weights * channels / HopperRates::TENSOR_FLOP,
            .exponentials = weights / Multiprocessor::EXPONENTIALS_PER_CLOCK,
            .multiply_adds = multiply_adds / Multiprocessor::MULTIPLY_ADDS_PER_CLOCK,
            .comparisons = comparisons / HopperRates::COMPARISONS,
            .issue = (multiply_adds + comparisons + weights) / 32 / HopperRates::INSTRUCTIONS,
            .shared = bytes / HopperRates::SHARED_BYTES};
}
// [unit-clocks]

// [schedule]
double block_clocks(const ModelledStep& step) {
    const UnitClocks c = unit_clocks(step);
    const double products = std::max(c.tensor, c.shared), softmax = c.softmax();
    switch (step.schedule) {
        case Schedule::load_too: {
            const double bytes = 2.0 * 2 * step.block_n * step.head_dim;
            return HopperRates::TRIP_CLOCKS + bytes / HopperRates::L2_BYTES + products + softmax;
        }
        case Schedule::in_turn: return products + softmax;
        case Schedule::shadow: return products / 2 + std::max(products / 2, softmax);
        case Schedule::together: break;
    }
    return c.busiest();
}
// [schedule]

std::int64_t warpgroup_blocks(const ModelledStep& step, const AttentionProblem& p,
                              std::int64_t first_q) {
    std::int64_t blocks = 0;
    for (int w = 0; w < step.warpgroups; ++w) {
        const std::int64_t first = step.own_diagonal ? first_q + 64 * w : first_q;
        const std::int64_t rows = step.own_diagonal ? 64 : step.block_m();
        if (first >= p.len_q) continue;
        const std::int64_t last = std::min(first + rows, p.len_q) - 1;
        blocks += (p.visible_keys(last) + step.block_n - 1) / step.block_n;
    }
    return blocks;
}

double causal_waste(const ModelledStep& step, const AttentionProblem& p) {
    double computed = 0, wanted = 0;
    for (std::int64_t first = 0; first < p.len_q; first += step.block_m())
        computed += static_cast<double>(warpgroup_blocks(step, p, first)) * 64 * step.block_n;
    for (std::int64_t i = 0; i < p.len_q; ++i) wanted += static_cast<double>(p.visible_keys(i));
    return computed / wanted;
}

// [seconds]
double predicted_seconds(const ModelledStep& step, const AttentionProblem& p, double clock_hz) {
    const double a_block = block_clocks(step) / step.warpgroups;  // of one warpgroup's 64 queries
    ModelledStep alone = step;
    alone.schedule = Schedule::shadow;
    const double without_others = block_clocks(alone) / step.warpgroups;
    const double ends = (step.persistent ? HopperRates::PERSISTENT_ENDS : HopperRates::ENDS) * 128 /
                        step.block_n * block_clocks(step);
    const int slots = Multiprocessor::COUNT * step.blocks_per_sm;
    std::priority_queue<double, std::vector<double>, std::greater<>> free_at(
        std::greater<>{}, std::vector<double>(static_cast<std::size_t>(slots), 0.0));
    double end = 0;
    for_each_tile(step, p, [&](std::int64_t first_q, std::int64_t times) {
        const auto blocks = static_cast<double>(warpgroup_blocks(step, p, first_q));
        // Where several tiles share a multiprocessor, the beginning and end of one hide behind the
        // others.
        const double clocks =
            step.blocks_per_sm == 1
                ? blocks * a_block + ends
                : std::max(step.blocks_per_sm * blocks * a_block, blocks * without_others + ends);
        for (std::int64_t n = 0; n < times; ++n) {
            const double done = free_at.top() + clocks;
            free_at.pop();
            free_at.push(done);
            end = std::max(end, done);
        }
    });
    return end / clock_hz;
}
// [seconds]

double least_seconds(const ModelledStep& step, const AttentionProblem& p, double clock_hz) {
    double blocks = 0;
    for (std::int64_t first = 0; first < p.len_q; first += step.block_m())
        blocks += static_cast<double>(warpgroup_blocks(step, p, first));
    return blocks * static_cast<double>(p.batch * p.heads_q) * unit_clocks(step).busiest() /
           step.warpgroups / (Multiprocessor::COUNT * clock_hz);
}

std::vector<ModelledStep> modelled_steps() {
    std::vector<ModelledStep> steps;
    for_each_hopper_step([&]<class Step>(int number, std::string_view name) {
        ModelledStep s = sizes<Step>(std::string(name));
        s.schedule = number == 1   ? Schedule::load_too
                     : number == 2 ? Schedule::in_turn
                     : number == 3 ? Schedule::shadow
                                   : Schedule::together;
        s.own_diagonal = number >= 6;
        s.rescale = number >= 8 ? Rescale::lazy : Rescale::always;
        steps.push_back(s);
    });
    return steps;
}

ModelledStep modelled_last(const AttentionProblem& p) {
    ModelledStep s;
    HopperKernel::with_config(p, Multiprocessor::COUNT, [&]<class Config>() {
        s = sizes<Config>("last");
        s.own_diagonal = Config::SWITCHES.own_diagonal;
        s.rescale = Config::RESCALE;
        if constexpr (requires { Config::BLOCKS_PER_SM; }) s.blocks_per_sm = Config::BLOCKS_PER_SM;
    });
    return s;
}

}  // namespace fa
