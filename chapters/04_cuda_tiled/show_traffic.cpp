#include <fmt/format.h>

#include <string>

#include "chapters/04_cuda_tiled/experiments.h"
#include "chapters/04_cuda_tiled/fused_kinds.h"
#include "chapters/04_cuda_tiled/multiprocessor.h"
#include "chapters/04_cuda_tiled/predictions.h"
#include "common/attention_data.h"
#include "common/cost_model.h"
#include "common/text_table.h"

namespace fa {
namespace {

/// The shape of the runs that are counted: one sequence, two heads.
AttentionProblem counted_problem(const KernelOptions& options) {
    AttentionProblem p = options.shape;
    p.batch = 1;
    p.heads_q = p.heads_kv = 2;
    p.len_q = p.len_kv = options.counted_length;
    return p;
}

template <class Kernel>
executor::Counters count(const AttentionProblem& p, std::uint64_t seed, bool banks) {
    return with_element_type(p.dtype, [&](auto element) {
        AttentionData<decltype(element)> data(p, seed);
        return run_on_executor<Kernel>(p, data.tensors(), {.count_banks = banks});
    });
}

// [unpadded]
/// The kernels with tiles that have no padding, to see what it is good for.
struct TiledWithoutPadding : TiledKernel {
    template <class Use>
    static bool with_config(std::int64_t head_dim, std::size_t limit, std::size_t& need,
                            Use&& use) {
        return with_first_config<TiledConfig<64, 64, 64, false>, TiledConfig<128, 32, 32, false>,
                                 TiledConfig<256, 32, 16, false>>(head_dim, limit, need, use);
    }
};
struct RegisterTiledWithoutPadding : RegisterTiledKernel {
    template <class Use>
    static bool with_config(std::int64_t head_dim, std::size_t limit, std::size_t& need,
                            Use&& use) {
        return with_first_config<RegisterTiledConfig<64, 128, 64, 16, 8, false>,
                                 RegisterTiledConfig<128, 64, 32, 16, 8, false>,
                                 RegisterTiledConfig<256, 32, 16, 8, 16, false>>(head_dim, limit,
                                                                                 need, use);
    }
};
// [unpadded]

}  // namespace

void show_traffic(Program& program, const KernelOptions& options) {
    print_heading("What is moved, counted by the executor");
    const AttentionProblem p = counted_problem(options);
    const double lse_bytes = sizeof(float) * static_cast<double>(p.batch * p.heads_q * p.len_q);
    fmt::print("{}\n\n", describe(p));
    TextTable table({"kernel", "blocks", "read", "written", "by formula", "barriers", "tiles"});
    for_each_fused_kernel([&]<class Kernel>(std::string_view name) {
        const KernelResources r = sizes_of<Kernel>(p, EXECUTOR_SHARED_LIMIT);
        const executor::Counters counted = count<Kernel>(p, program.seed, false);
        // Chapter 3's formula for the loop with Q outside, and the LSE, which it leaves out.
        const double formula = q_outer_cost(p, {r.block_m, r.block_n}).bytes + lse_bytes;
        const std::int64_t tiles = tiles_of(p, r.block_m, r.block_n);
        const auto moved =
            static_cast<double>(counted.global_load_bytes + counted.global_store_bytes);
        table.add({std::string(name), fmt::format("{}", counted.blocks),
                   fmt::format("{} B", counted.global_load_bytes),
                   fmt::format("{} B", counted.global_store_bytes),
                   fmt::format("{:.0f} B", formula), fmt::format("{}", counted.barriers),
                   fmt::format("{}", tiles)});
        program.checks.equal(fmt::format("{}: bytes counted are those of the formula", name), moved,
                             formula);
        program.checks.equal(fmt::format("{}: two barriers a tile", name),
                             static_cast<double>(counted.barriers), 2 * static_cast<double>(tiles));
        program.results.extras["traffic"].push_back({{"kernel", name},
                                                     {"len", p.len_q},
                                                     {"read_bytes", counted.global_load_bytes},
                                                     {"written_bytes", counted.global_store_bytes},
                                                     {"formula_bytes", formula},
                                                     {"barriers", counted.barriers},
                                                     {"tiles", tiles}});
    });
    fmt::print("{}\n", table.str());
    const Cost fused = q_outer_cost(options.shape, {64, 64});
    Cost naive;
    for (const Cost& step : cuda_naive_cost(options.shape)) naive += step;
    fmt::print("For {} by formula: {} with 64 x 64 tiles,\n{} with S and P in memory.\n",
               describe(options.shape), human_bytes(fused.bytes), human_bytes(naive.bytes));
}

void show_bank_conflicts(Program& program, const KernelOptions& options) {
    print_heading("Shared memory: clocks and bank conflicts, counted by the executor");
    const AttentionProblem p = counted_problem(options);
    TextTable table({"kernel", "rows", "accesses of a warp", "clocks without conflicts", "clocks",
                     "lost", "clocks per tile"});
    table.left(1);
    const auto add = [&]<class Kernel>(std::string_view name, bool padded) {
        const KernelResources r = sizes_of<Kernel>(p, EXECUTOR_SHARED_LIMIT);
        const executor::Counters c = count<Kernel>(p, program.seed, true);
        const double lost =
            static_cast<double>(c.bank_conflicts()) / static_cast<double>(c.shared_wavefronts);
        table.add(
            {std::string(name), padded ? "padded" : "not padded",
             fmt::format("{}", c.shared_instructions), fmt::format("{}", c.shared_ideal),
             fmt::format("{}", c.shared_wavefronts), fmt::format("{:.1f} %", 100 * lost),
             fmt::format("{:.0f}", static_cast<double>(c.shared_wavefronts) /
                                       static_cast<double>(tiles_of(p, r.block_m, r.block_n)))});
        program.results.extras["bank_conflicts"].push_back({{"kernel", name},
                                                            {"padded", padded},
                                                            {"instructions", c.shared_instructions},
                                                            {"ideal", c.shared_ideal},
                                                            {"wavefronts", c.shared_wavefronts}});
        return lost;
    };
    const double tiled_without = add.operator()<TiledWithoutPadding>("tiled", false);
    const double tiled = add.operator()<TiledKernel>("tiled", true);
    const double register_without =
        add.operator()<RegisterTiledWithoutPadding>("register_tiled", false);
    const double register_tiled = add.operator()<RegisterTiledKernel>("register_tiled", true);
    fmt::print("{}", table.str());
    // The padded strides are made for rows of 64, 128 and 256 floats.
    program.checks.at_most("tiled, padded: share of clocks lost to conflicts", tiled, 0.15);
    program.checks.at_least("tiled, not padded: share of clocks lost", tiled_without, 0.5);
    program.checks.at_most("register_tiled, padded: share of clocks lost", register_tiled, 0.05);
    program.checks.at_least("register_tiled, not padded: share of clocks lost", register_without,
                            0.4);
}

}  // namespace fa
