/// @file
/// ch09_hopper: what lies where, the steps of the ladder, what each is worth, and a timeline.

#include <fmt/format.h>

#include "chapters/09_hopper/experiments.h"
#include "chapters/09_hopper/hunt.h"

int main(int argc, char** argv) {
    using namespace fa;
    Program program("ch09_hopper", "Attention on Hopper: TMA, warpgroup products, roles.");
    std::string lengths = "512,1k,2k,4k,8k,16k", counted = "512", traced = "4k", dtype = "bf16";
    HopperOptions options;
    int full = 0;
    double hunted_seconds = 0;
    int hunting_processes = 0;

    CLI::App& flags = program.flags();
    const CLI::Validator count = between(1, 256);
    flags.add_option("--lengths", lengths, "lengths T that are predicted, and timed on the GPU");
    flags.add_option("--batch", options.shape.batch, "sequences B")->check(count);
    flags.add_option("--heads", options.shape.heads_q, "heads H")->check(count);
    flags
        .add_option("--heads128", options.heads128,
                    "heads H of the variants for 128 channels; all else has 64")
        ->check(count);
    flags.add_option("--dtype", dtype, "type of Q, K, V and O: fp16 or bf16")
        ->check(CLI::IsMember({"fp16", "bf16"}));
    flags.add_option("--full", full, "1: without the causal mask")->check(between(0, 1));
    flags.add_option("--clock", options.clock_mhz, "MHz of the GPU that predictions are for")
        ->check(between(100, 10000));
    flags.add_option("--counted-length", counted,
                     "length T of the runs on the executor, which count and compare");
    flags.add_option("--orders", options.orders, "random orders of warps that the executor tries")
        ->check(between(1, 1000));
    flags.add_option("--traced-length", traced, "length T of the timeline on the GPU");
    flags.add_option("--runs", options.runs, "timed replays on the GPU")->check(between(1, 1000));
    flags
        .add_option("--power", options.power_seconds,
                    "seconds of more replays on the GPU, for the mean power; 0: none")
        ->check(between(0, 60));
    flags
        .add_option("--hunt", hunted_seconds,
                    "instead of all else: so many seconds of launches that look for rare faults")
        ->check(above_zero());
    flags
        .add_option("--hunt-processes", hunting_processes,
                    "with --hunt: as many hunts as this, one process after the other, with seeds "
                    "from --seed on")
        ->check(between(1, 100000));

    return program.run(argc, argv, [&] {
        if (hunting_processes > 0 && hunted_seconds == 0)
            throw UsageError("--hunt-processes goes with --hunt SECONDS");
        if (hunting_processes > 0)
            return hunt_in_processes(program, hunted_seconds, hunting_processes);
        if (hunted_seconds > 0) return hunt(program, hunted_seconds);
        options.lengths = parse_lengths("--lengths", lengths, 1, 1 << 18);
        const auto one = [](const char* flag, const std::string& text, std::int64_t least) {
            const auto list = parse_lengths(flag, text, least, 16384);
            if (list.size() != 1)
                throw UsageError(fmt::format("{}: one length from {} to 16384", flag, least));
            return list[0];
        };
        options.counted_length = one("--counted-length", counted, 64);
        options.traced_length = one("--traced-length", traced, 64);
        AttentionProblem& shape = options.shape;
        shape.heads_kv = shape.heads_q;
        shape.dtype = *dtype_from_name(dtype);
        shape.causal = full == 0;

        show_layout(program);
        show_resources(program, options);
        show_steps(program, options);
        show_counts(program, options);
        show_sizes(program, options);
        show_ablations(program, options);
        show_timeline(program, options);
        show_errors(program, options);
    });
}
