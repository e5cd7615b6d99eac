#include <fmt/format.h>

#include <string>
#include <vector>

#include "chapters/04_cuda_tiled/experiments.h"
#include "chapters/04_cuda_tiled/fused_kinds.h"
#include "chapters/04_cuda_tiled/multiprocessor.h"
#include "common/text_table.h"
#ifdef FA_CUDA_ENABLED
#include "chapters/04_cuda_tiled/tiled_attention.h"
#endif

namespace fa {
namespace {

/// Where the figures come from: the driver, or the sources.
struct Described {
    std::string name;
    KernelResources resources;
    bool by_driver = false;
};

std::vector<Described> described(const Program& program, const AttentionProblem& p) {
    std::vector<Described> list;
    for_each_fused_kernel([&]<class Kernel>(std::string_view name) {
        Described d{std::string(name), sizes_of<Kernel>(p, Multiprocessor::SHARED_BYTES_PER_BLOCK)};
        d.resources.blocks_per_multiprocessor =
            blocks_by_shared_memory(d.resources.shared_bytes, d.resources.threads);
        d.resources.occupancy =
            static_cast<double>(d.resources.blocks_per_multiprocessor * d.resources.threads) /
            Multiprocessor::THREADS;
#ifdef FA_CUDA_ENABLED
        if (program.where() == Device::cuda) {
            d.resources = kernel_resources("cuda_" + d.name, p);
            d.by_driver = true;
        }
#endif
        list.push_back(d);
    });
    static_cast<void>(program);
    return list;
}

}  // namespace

void show_launch(Program& program, const KernelOptions& options) {
    print_heading("What is launched");
    const AttentionProblem& p = options.shape;
    fmt::print("{}: one thread block for each block of queries of each head.\n\n", describe(p));
    TextTable table({"kernel", "queries x keys", "blocks", "threads", "shared memory", "registers",
                     "blocks per SM", "occupancy", "rounds"});
    bool by_driver = false;
    for (const Described& d : described(program, p)) {
        const KernelResources& r = d.resources;
        by_driver = d.by_driver;
        const double at_once = 1.0 * Multiprocessor::COUNT * r.blocks_per_multiprocessor;
        table.add({d.name, fmt::format("{} x {}", r.block_m, r.block_n),
                   fmt::format("{}", r.blocks), fmt::format("{}", r.threads),
                   fmt::format("{} B", r.shared_bytes),
                   d.by_driver ? fmt::format("{}", r.registers) : "?",
                   fmt::format("{}{}", d.by_driver ? "" : "<= ", r.blocks_per_multiprocessor),
                   fmt::format("{}{:.0f} %", d.by_driver ? "" : "<= ", 100 * r.occupancy),
                   fmt::format("{:.1f}", static_cast<double>(r.blocks) / at_once)});
        program.results.extras["launch"].push_back(
            {{"kernel", d.name},
             {"blocks", r.blocks},
             {"block_m", r.block_m},
             {"block_n", r.block_n},
             {"threads", r.threads},
             {"shared_bytes", r.shared_bytes},
             {"registers", number_or_null(d.by_driver, r.registers)},
             {"local_bytes", number_or_null(d.by_driver, r.local_bytes)},
             {"blocks_per_multiprocessor", r.blocks_per_multiprocessor},
             {"occupancy", r.occupancy},
             {"by_driver", d.by_driver}});
        const std::int64_t expected = p.batch * p.heads_q * ((p.len_q + r.block_m - 1) / r.block_m);
        program.checks.equal(fmt::format("{}: blocks are B x H x ceil(T / {})", d.name, r.block_m),
                             static_cast<double>(r.blocks), static_cast<double>(expected));
        program.checks.at_most(d.name + ": shared memory of a block",
                               static_cast<double>(r.shared_bytes),
                               static_cast<double>(Multiprocessor::SHARED_BYTES_PER_BLOCK));
    }
    fmt::print("{}\n", table.str());
    fmt::print(
        "An H200 has {} SMs (multiprocessors), each with {} KiB of shared memory, room for {} "
        "threads and\n{} registers; \"rounds\" is blocks / (SMs x blocks per SM).\n",
        Multiprocessor::COUNT, Multiprocessor::SHARED_BYTES / 1024, Multiprocessor::THREADS,
        Multiprocessor::REGISTERS);
    if (by_driver)
        fmt::print("Registers, blocks per SM and occupancy are what the driver says.\n");
    else
        fmt::print(
            "How many registers a kernel takes its compiler for the GPU knows; without a GPU to "
            "ask, "
            "blocks per SM\nand occupancy are what shared memory and threads allow.\n");
}

}  // namespace fa
