/// @file
/// ch03_blocked_attention: attention in tiles on the CPU: what is visited, moved, held, and how
/// fast.

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <string>

#include "chapters/03_blocked_attention/experiments.h"

namespace {

// Without optimisation, or with a sanitizer, the long lengths would take minutes.
#if defined(NDEBUG) && !defined(FA_SANITIZED)
constexpr const char* LENGTHS = "512,1024,4096";
#else
constexpr const char* LENGTHS = "256";
#endif

}  // namespace

int main(int argc, char** argv) {
    using namespace fa;
    Program program(
        "ch03_blocked_attention",
        "Attention in tiles: what each loop order visits, moves and holds, and how fast.");
    Options options;
    std::string lengths = LENGTHS, on_chip = "16,32,64,96,192", dtype = "fp32";
    bool full = false, causal = false;
    double memory_limit_gib = 2;
    AttentionProblem& problem = options.problem;
    problem.heads_q = 12;

    CLI::App& flags = program.flags();
    const CLI::Range size(1, 1 << 20);
    flags.add_option("--lengths", lengths, "tokens of the timed runs");
    flags.add_option("--batch", problem.batch, "batch of the timed runs")->check(size);
    flags.add_option("--heads", problem.heads_q, "heads of the timed runs")->check(size);
    flags.add_option("--dim", problem.head_dim, "head dimension of the timed runs")->check(size);
    flags.add_option("--dtype", dtype, "fp32, fp16 or bf16: inputs of the timed runs")
        ->check(CLI::IsMember({"fp32", "fp16", "bf16"}));
    auto* const causal_flag =
        flags.add_flag("--causal", causal, "timed runs with the causal mask (default)");
    flags.add_flag("--full", full, "timed runs without a mask")->excludes(causal_flag);
    flags
        .add_option("--threads", options.threads,
                    "threads where many are used; 0: all, two at least")
        ->check(CLI::Range(0, 1024));
    flags.add_option("--block-q", options.tiles.q, "queries in a tile, Eigen version")->check(size);
    flags.add_option("--block-kv", options.tiles.kv, "keys in a tile, Eigen version")->check(size);
    flags.add_option("--on-chip", on_chip, "on-chip memories of the traffic tables, in KB");
    flags.add_option("--traffic-length", options.traffic_length, "tokens of the traffic tables")
        ->check(CLI::Range(1, 1 << 14));
    flags
        .add_option("--memory-limit", memory_limit_gib,
                    "GiB; timed runs that need more scratch are left out")
        ->check(CLI::NonNegativeNumber);

    return program.run(argc, argv, [&] {
        options.lengths = parse_lengths("--lengths", lengths);
        options.on_chip_kb = parse_lengths("--on-chip", on_chip);
        for (const std::int64_t kb : options.on_chip_kb)
            if (kb < 1 || kb > (1 << 20))
                throw UsageError(fmt::format("--on-chip: {} KB, must be 1 to 1048576", kb));
        if (options.threads == 0) options.threads = std::max(2, omp_get_max_threads());
        options.memory_limit = memory_limit_gib * (1 << 30);
        problem.heads_kv = problem.heads_q;
        problem.dtype = *dtype_from_name(dtype);
        problem.causal = !full;

        show_scan(program, options);
        show_traffic(program, options);
        show_accuracy(program);
        show_threads(program, options);
        show_block_sizes(program);

        const std::vector<MachineRates> machine = {measure_rates(1),
                                                   measure_rates(options.threads)};
        print_heading("What this machine can do, measured");
        fmt::print("{}", table_of(machine));
        show_tile(program, machine.front());
        show_speed(program, options, machine);
    });
}
