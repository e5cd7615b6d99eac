/// @file
/// ch03_blocked_attention: attention in tiles on the CPU: what is visited, moved, held, and how
/// fast.

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <string>

#include "chapters/03_blocked_attention/experiments.h"
#include "common/machine.h"

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
    const CLI::Validator size = between(1, 1 << 20);
    flags.add_option("--lengths", lengths, "tokens of the timed runs");
    flags.add_option("--batch", problem.batch, "batch of the timed runs")->check(size);
    flags.add_option("--heads", problem.heads_q, "heads of the timed runs")->check(size);
    flags.add_option("--head-dim", problem.head_dim, "head dimension of the timed runs")
        ->check(between(1, 256));
    flags.add_option("--dtype", dtype, "fp32, fp16 or bf16: inputs of the timed runs");
    auto* const causal_flag =
        flags.add_flag("--causal", causal, "timed runs with the causal mask (default)");
    flags.add_flag("--full", full, "timed runs without a mask")->excludes(causal_flag);
    flags
        .add_option("--threads", options.threads,
                    "threads where many are used; 0: all, two at least")
        ->check(between(0, 1024));
    flags.add_option("--block-q", options.tiles.q, "queries in a tile, Eigen version")->check(size);
    flags.add_option("--block-kv", options.tiles.kv, "keys in a tile, Eigen version")->check(size);
    flags.add_option("--on-chip", on_chip, "on-chip memories of the traffic tables, in KiB");
    flags.add_option("--traffic-length", options.traffic_length, "tokens of the traffic tables")
        ->check(between(1, 1 << 14));
    flags
        .add_option("--memory-limit", memory_limit_gib,
                    "GiB; timed runs that need more scratch are left out")
        ->check(at_least(0));

    return program.run(argc, argv, [&] {
        options.lengths = parse_lengths("--lengths", lengths, 1, 1 << 20);
        options.on_chip_kib = parse_lengths("--on-chip", on_chip, 1, 1 << 20);
        if (options.threads == 0) options.threads = std::max(2, omp_get_max_threads());
        options.memory_limit = memory_limit_gib * (1 << 30);
        problem.heads_kv = problem.heads_q;
        problem.dtype = parse_dtype("--dtype", dtype);
        problem.causal = !full;
        problem.len_q = problem.len_kv =
            *std::max_element(options.lengths.begin(), options.lengths.end());
        check_fits_in_memory(problem);

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
