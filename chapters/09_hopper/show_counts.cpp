#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>

#include "chapters/09_hopper/counted_steps.h"
#include "chapters/09_hopper/hopper_model.h"
#include "common/text_table.h"

namespace fa {
namespace {

/// The same bits in O and LSE.
bool same(const AttentionData<BFloat16>& a, const AttentionData<BFloat16>& b) {
    return std::memcmp(a.o.data(), b.o.data(), a.o.size() * sizeof(BFloat16)) == 0 &&
           std::memcmp(a.lse.data(), b.lse.data(), a.lse.size() * sizeof(float)) == 0;
}

void poison(AttentionData<BFloat16>& data) {
    constexpr float NOT_A_NUMBER = std::numeric_limits<float>::quiet_NaN();
    std::fill(data.o.begin(), data.o.end(), BFloat16(NOT_A_NUMBER));
    std::fill(data.lse.begin(), data.lse.end(), NOT_A_NUMBER);
}

/// Runs with other orders of warps; how many gave other bits than `expected`.
template <class Kernel, class Config>
int other_results(const AttentionProblem& p, const AttentionData<BFloat16>& expected,
                  std::uint64_t seed, int orders) {
    AttentionData<BFloat16> data(p, seed);
    int others = 0;
    for (int order = 1; order <= orders; ++order) {
        poison(data);
        run_counted<Kernel, Config>(p, data, {.shuffle = static_cast<std::uint64_t>(order)});
        others += !same(data, expected);
    }
    return others;
}

}  // namespace

void show_counts(Program& program, const HopperOptions& options) {
    print_heading("What moves and what is multiplied, counted");
    const AttentionProblem p = counted_problem(options, 2);
    fmt::print(
        "{}, counted by the executor: bytes of global memory; a warp's accesses to\nshared "
        "memory, without what TMA and products do there; products, one for 64 queries and 64 keys; "
        "waits of\nwhole blocks. Other orders: random ones of the warps, with copies at random "
        "moments.\n\n",
        describe(p));
    TextTable table({"kernel", "read", "written", "shared accesses", "products", "block waits",
                     "other bits in other orders"});
    std::map<std::string, executor::Counters, std::less<>> counted;
    for_each_counted_step([&]<class Kernel, class Config>(std::string_view name) {
        AttentionData<BFloat16> data(p, program.seed);
        poison(data);
        const executor::Counters c = run_counted<Kernel, Config>(p, data, {.count_banks = true});
        counted[std::string(name)] = c;
        const int others = other_results<Kernel, Config>(p, data, program.seed, options.orders);
        table.add(
            {std::string(name), fmt::format("{} B", c.global_load_bytes),
             fmt::format("{} B", c.global_store_bytes), fmt::format("{}", c.shared_instructions),
             fmt::format("{:.2f}", static_cast<double>(c.product_flop) / (4.0 * 64 * 64 * 64)),
             fmt::format("{}", c.barriers), fmt::format("{} of {}", others, options.orders)});
        program.results.extras["counted"].push_back({{"kernel", name},
                                                     {"load_bytes", c.global_load_bytes},
                                                     {"store_bytes", c.global_store_bytes},
                                                     {"shared_accesses", c.shared_instructions},
                                                     {"product_flop", c.product_flop},
                                                     {"barriers", c.barriers},
                                                     {"orders", options.orders},
                                                     {"other_results", others}});
        program.checks.equal(
            fmt::format("{}: results with other bits in other orders of warps", name), others, 0);
    });
    fmt::print("{}", table.str());
    // What the model says of the work, and what was done.
    for (const ModelledStep& step : modelled_steps()) {
        std::int64_t blocks = 0;
        for (std::int64_t first = 0; first < p.len_q; first += step.block_m())
            blocks += p.heads_q * warpgroup_blocks(step, p, first);
        program.checks.equal(step.name + ": operations of its products over the model's",
                             static_cast<double>(counted[step.name].product_flop) /
                                 (4.0 * 64 * step.block_n * 64 * static_cast<double>(blocks)),
                             1);
    }
    if (p.causal && p.len_q > 64)
        program.checks.at_most("diagonal over warpgroups: operations of the products",
                               static_cast<double>(counted["diagonal"].product_flop) /
                                   static_cast<double>(counted["warpgroups"].product_flop),
                               0.99);
}

}  // namespace fa
