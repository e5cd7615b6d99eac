#include <fmt/format.h>

#include <string>

#include "chapters/04_cuda_tiled/multiprocessor.h"
#include "chapters/08_tensor_cores/experiments.h"
#include "chapters/08_tensor_cores/step_counts.h"
#include "common/text_table.h"
#ifdef FA_CUDA_ENABLED
#include "chapters/08_tensor_cores/cuda_tensor_cores.h"
#include "chapters/08_tensor_cores/ladder.h"
#endif

namespace fa {
namespace {

/// The sizes, and the most blocks at a time that shared memory and threads allow.
template <class Config>
KernelResources bounded_resources(const AttentionProblem& p) {
    KernelResources r = sizes_of_config<Config>(blocks_of(p, Config::BLOCK_M));
    r.blocks_per_multiprocessor = blocks_by_shared_memory(r.shared_bytes, r.threads);
    return r;
}

void add(Program& program, TextTable& table, const std::string& name, const KernelResources& r,
         bool by_driver) {
    table.add({name, fmt::format("{}", r.head_dim), fmt::format("{} x {}", r.block_m, r.block_n),
               fmt::format("{} B", r.shared_bytes),
               by_driver ? fmt::format("{}", r.registers) : "?",
               by_driver ? fmt::format("{} B", r.local_bytes) : "?",
               fmt::format("{}{}", by_driver ? "" : "<= ", r.blocks_per_multiprocessor),
               fmt::format("{}{}",
                           by_driver ? "" : "<= ", r.blocks_per_multiprocessor * r.threads / 32)});
    program.results.extras["resources"].push_back(
        {{"kernel", name},
         {"head_dim", r.head_dim},
         {"block_m", r.block_m},
         {"block_n", r.block_n},
         {"shared_bytes", r.shared_bytes},
         {"registers", number_or_null(by_driver, r.registers)},
         {"spilled_bytes", number_or_null(by_driver, r.local_bytes)},
         {"blocks_per_multiprocessor", r.blocks_per_multiprocessor}});
    program.checks.at_most(name + ": shared memory of a block, what compute capability 8.6 has",
                           static_cast<double>(r.shared_bytes), 99 * 1024);
    if (by_driver && name.starts_with("last"))
        program.checks.equal(name + ": bytes of spilled registers",
                             static_cast<double>(r.local_bytes), 0);
}

}  // namespace

void show_resources(Program& program, const TensorCoreOptions& options) {
    print_heading("What a block holds");
    [[maybe_unused]] const bool gpu = program.where() == Device::cuda;
    AttentionProblem p = options.shape;
    p.head_dim = 64;
    p.len_q = p.len_kv = 4096;
    TextTable table({"kernel", "channels", "queries x keys", "shared memory", "registers",
                     "spilled", "blocks per SM", "warps per SM"});
    for_each_step([&]<class Step>(int, std::string_view step) {
        const std::string name(step);
#ifdef FA_CUDA_ENABLED
        if (gpu) return add(program, table, name, ladder_resources("cuda_" + name, p), true);
#endif
        add(program, table, name, bounded_resources<Step>(p), false);
    });
    // The last kernel where a problem fills the GPU, and where it does not.
    for (const auto& [length, rows] : {std::pair{4096, "long"}, {128, "short"}})
        for (const std::int64_t head_dim : {64, 128, 256}) {
            p.head_dim = head_dim;
            p.len_q = p.len_kv = length;
            if (head_dim == 256 && length == 128) continue;  // one size for all
            const std::string name =
                head_dim == 256 ? "last, d256" : fmt::format("last, d{}, {}", head_dim, rows);
#ifdef FA_CUDA_ENABLED
            if (gpu) {
                add(program, table, name, tensor_cores_resources(p), true);
                continue;
            }
#endif
            TensorCoreKernel::with_config(p, true, Multiprocessor::COUNT, [&]<class Config>() {
                add(program, table, name, bounded_resources<Config>(p), false);
            });
        }
    fmt::print("{}", table.str());
    if (!gpu)
        fmt::print(
            "\nHow many registers a kernel takes its compiler for the GPU knows. Blocks per SM: as "
            "many as the shared\nmemory of an H200 allows.\n");
}

}  // namespace fa
