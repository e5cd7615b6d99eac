/// @file
/// ch04_cuda_tiled: attention in three kernels and in one, what a thread block holds and moves, on
/// the GPU or, without one, on the CPU executor.

#include <fmt/format.h>

#include "chapters/04_cuda_tiled/experiments.h"

int main(int argc, char** argv) {
    using namespace fa;
    Program program("ch04_cuda_tiled",
                    "Attention on the GPU: three kernels with S in memory, and one without.");
    std::string length = "4k", counted = "256", naive_length = "16k";
    std::string dtype = "bf16";
    KernelOptions options;
    double memory_limit_gib = 8;

    CLI::App& flags = program.flags();
    const CLI::Validator count = between(1, 4096);
    flags.add_option("--length", length, "length T of what is launched, predicted and timed");
    flags.add_option("--batch", options.shape.batch, "sequences B")->check(count);
    flags.add_option("--heads", options.shape.heads_q, "heads H")->check(count);
    flags.add_option("--head-dim", options.shape.head_dim, "head dimension d")
        ->check(between(1, 256));
    flags.add_option("--dtype", dtype, "type of Q, K, V and O: fp32, fp16 or bf16");
    flags.add_flag("--full", options.full, "without the causal mask");
    flags.add_option("--counted-length", counted,
                     "length T of the runs on the executor, which count and compare");
    flags.add_option("--runs", options.runs, "timed replays on the GPU")->check(between(1, 1000));
    flags
        .add_option("--memory-limit", memory_limit_gib,
                    "pretend that the GPU has this much memory, in GiB, for the last section")
        ->check(between(0.001, 4096.0));
    flags.add_option("--naive-length", naive_length, "length T of the last section");

    return program.run(argc, argv, [&] {
        const auto one_length = [](const std::string& flag, const std::string& text,
                                   std::int64_t most) {
            const auto list = parse_lengths(flag, text);
            if (list.size() != 1 || list[0] < 1 || list[0] > most)
                throw UsageError(fmt::format("{}: one length from 1 to {}", flag, most));
            return list[0];
        };
        const auto type = dtype_from_name(dtype);
        if (!type)
            throw UsageError(fmt::format("--dtype: \"{}\" is not fp32, fp16 or bf16", dtype));
        AttentionProblem& shape = options.shape;
        shape.len_q = shape.len_kv = one_length("--length", length, 1 << 20);
        shape.heads_kv = shape.heads_q;
        shape.dtype = *type;
        shape.causal = !options.full;
        options.counted_length = one_length("--counted-length", counted, 2048);
        options.naive_length = one_length("--naive-length", naive_length, 1 << 18);
        options.memory_limit =
            static_cast<std::size_t>(memory_limit_gib * 1024.0 * 1024.0 * 1024.0);

        show_launch(program, options);
        show_traffic(program, options);
        show_bank_conflicts(program, options);
        show_faults(program);
        show_errors(program, options);
        show_times(program, options);
        show_out_of_memory(program, options);
    });
}
