#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>

#include "chapters/04_cuda_tiled/multiprocessor.h"
#include "chapters/09_hopper/executor_entries.h"
#include "chapters/09_hopper/experiments.h"
#include "chapters/09_hopper/hopper_host.h"
#include "chapters/09_hopper/ladder_host.h"
#include "chapters/09_hopper/launch_registers.h"
#include "common/text_table.h"
#ifdef FA_HOPPER_ENABLED
#include "chapters/09_hopper/cuda_hopper.h"
#include "chapters/09_hopper/ladder.h"
#endif

namespace fa {
namespace {

/// A kernel as the table shows it.
struct Kernel {
    std::string name;
    KernelResources resources;  ///< from the driver if `by_driver`
    int stages = 0;
    int producer_registers = 0, consumer_registers = 0;  ///< setmaxnreg; 0: as launched
    int promised_blocks = 1;                             ///< per SM, by __launch_bounds__
};

template <class Config>
Kernel describe_kernel(std::string name, const AttentionProblem& p) {
    Kernel k{.name = std::move(name),
             .resources = sizes_of_config<Config>(blocks_of(p, Config::BLOCK_M)),
             .stages = Config::STAGES};
    if constexpr (requires { Config::PRODUCER_REGISTERS; }) {
        k.producer_registers = Config::PRODUCER_REGISTERS;
        k.consumer_registers = Config::CONSUMER_REGISTERS;
    }
    if constexpr (requires { Config::BLOCKS_PER_SM; }) k.promised_blocks = Config::BLOCKS_PER_SM;
    return k;
}

void add(Program& program, TextTable& table, const Kernel& k, bool by_driver) {
    const KernelResources& r = k.resources;
    const bool moves = k.producer_registers > 0;
    const auto known = [&](std::string text) { return by_driver ? text : std::string("?"); };
    const int resident = by_driver ? r.blocks_per_multiprocessor : k.promised_blocks;
    table.add({k.name, fmt::format("{}", r.head_dim), fmt::format("{} x {}", r.block_m, r.block_n),
               fmt::format("{}", r.threads), fmt::format("{}", k.stages),
               fmt::format("{} B", r.shared_bytes), known(fmt::format("{}", r.registers)),
               moves ? fmt::format("{} / {}", k.producer_registers, k.consumer_registers) : "-",
               known(fmt::format("{} B", r.local_bytes)), fmt::format("{}", resident)});
    program.results.extras["resources"].push_back(
        {{"kernel", k.name},
         {"head_dim", r.head_dim},
         {"block_m", r.block_m},
         {"block_n", r.block_n},
         {"threads", r.threads},
         {"stages", k.stages},
         {"shared_bytes", r.shared_bytes},
         {"registers", number_or_null(by_driver, r.registers)},
         {"producer_registers", k.producer_registers},
         {"consumer_registers", k.consumer_registers},
         {"local_bytes", number_or_null(by_driver, r.local_bytes)},
         {"blocks_per_multiprocessor", resident}});
    const auto with_reserve =
        static_cast<double>(r.shared_bytes + Multiprocessor::SHARED_BYTES_RESERVED);
    program.checks.at_most(k.name + ": shared memory of the blocks of an SM",
                           k.promised_blocks * with_reserve,
                           static_cast<double>(Multiprocessor::SHARED_BYTES));
    if (moves)
        // What the compiler took is what the launch hands out.
        program.checks.at_most(
            k.name + ": registers when they are moved, those of the launch",
            moved_registers(r.threads, k.producer_registers, k.consumer_registers),
            static_cast<double>(r.threads) *
                (by_driver ? r.registers : launch_registers(r.threads)));
    if (by_driver)
        // A row that is computed again hands its sums over in memory (recompute_rows.h); the build
        // refuses registers that are kept there.
        program.checks.at_most(k.name + ": bytes of local memory of a thread",
                               static_cast<double>(r.local_bytes), 64);
}

}  // namespace

void show_resources(Program& program, const HopperOptions& options) {
    print_heading("What a block holds");
    [[maybe_unused]] const bool gpu = hopper_is_here(program);
    AttentionProblem p = options.shape;
    p.dtype = DType::bf16;
    TextTable table({"kernel", "d", "tile", "threads", "stages", "shared memory", "registers",
                     "moved", "local", "blocks per SM"});
    p.head_dim = 64;
    p.len_q = p.len_kv = 4096;
    for_each_hopper_step([&]<class Step>(int, std::string_view name) {
        Kernel k = describe_kernel<Step>(std::string(name), p);
#ifdef FA_HOPPER_ENABLED
        if (gpu) k.resources = hopper_ladder_resources("cuda_" + k.name, p);
#endif
        add(program, table, k, gpu);
    });
    const auto add_sizes = [&]<class... Config>(const std::tuple<SizeOption<Config>...>& sizes) {
        [[maybe_unused]] std::size_t n = 0;
        const auto add_size = [&]<class One>(const SizeOption<One>& option) {
            p.head_dim = One::HEAD_DIM;
            Kernel k = describe_kernel<One>(std::string(option.name), p);
#ifdef FA_HOPPER_ENABLED
            if (gpu)
                k.resources =
                    (One::HEAD_DIM == 64 ? hopper_sizes64_on_gpu() : hopper_sizes128_on_gpu())[n++]
                        .resources(p);
#endif
            add(program, table, k, gpu);
        };
        std::apply([&](const auto&... option) { (add_size(option), ...); }, sizes);
    };
    add_sizes(options64<Rescale::rare>());
    add_sizes(options128<Rescale::rare>());
    fmt::print("{}", table.str());
    fmt::print(
        "\nTile: queries x keys. Moved: registers of a thread that loads / that computes, once "
        "setmaxnreg has\nmoved them.\n");
    if (!gpu)
        fmt::print(
            "Only the compiler for the GPU knows how many registers a launch takes. Blocks per SM: "
            "as the kernel's\nlaunch bounds promise.\n");
}

}  // namespace fa
