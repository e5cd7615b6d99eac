/// @file
/// ch08_tensor_cores: which lane holds what, banks, the steps of the ladder and what each is worth.

#include <fmt/format.h>

#include "chapters/08_tensor_cores/experiments.h"

int main(int argc, char** argv) {
    using namespace fa;
    Program program("ch08_tensor_cores", "Attention on tensor cores: a ladder of eight kernels.");
    std::string lengths = "512,1k,2k,4k,8k,16k", counted = "256", dtype = "bf16";
    std::string model = FA_TINY_GPT, tokens;
    TensorCoreOptions options;
    int full = 0;

    CLI::App& flags = program.flags();
    const CLI::Validator count = between(1, 4096);
    flags.add_option("--lengths", lengths, "lengths T of what is timed on the GPU");
    flags.add_option("--batch", options.shape.batch, "sequences B")->check(count);
    flags.add_option("--heads", options.shape.heads_q, "heads H")->check(count);
    flags.add_option("--dtype", dtype, "type of Q, K, V and O: fp16 or bf16")
        ->check(CLI::IsMember({"fp16", "bf16"}));
    flags.add_option("--full", full, "1: without the causal mask")->check(between(0, 1));
    flags.add_option("--counted-length", counted,
                     "length T of the runs on the executor, which count and compare");
    flags.add_option("--runs", options.runs, "timed replays on the GPU")->check(between(1, 1000));
    flags.add_option("--model", model, "folder of a GPT-2, for its activations");
    flags.add_option("--tokens", tokens,
                     "a shard (.bin), or text; default: the model's sample.txt");
    flags.add_option("--sequences", options.sequences, "of the model's tokens")
        ->check(between(1, 64));
    flags.add_option("--context", options.context, "tokens in each")->check(between(64, 8192));

    return program.run(argc, argv, [&] {
        options.lengths = parse_lengths("--lengths", lengths, 1, 1 << 18);
        const auto counted_lengths = parse_lengths("--counted-length", counted, 128, 4096);
        if (counted_lengths.size() != 1)
            throw UsageError("--counted-length: one length from 128 to 4096");
        options.counted_length = counted_lengths[0];
        AttentionProblem& shape = options.shape;
        shape.heads_kv = shape.heads_q;
        shape.dtype = *dtype_from_name(dtype);
        shape.causal = full == 0;
        options.model = model;
        options.tokens =
            tokens.empty() ? options.model / "sample.txt" : std::filesystem::path(tokens);
        const NetworkText text = read_network(options);

        show_fragments(program);
        show_banks(program, options);
        show_resources(program, options);
        show_steps(program, options);
        show_ablations(program, options);
        show_growth(program, options, text);
        show_errors(program, options);
    });
}
