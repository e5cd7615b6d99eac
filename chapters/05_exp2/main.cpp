/// @file
/// ch05_exp2: softmax in base 2, why it is the same, what it saves, and what it must not break.

#include <cmath>

#include "chapters/05_exp2/experiments.h"

int main(int argc, char** argv) {
    using namespace fa;
    Program program("ch05_exp2", "Softmax in base 2: the same result, fewer instructions.");
    std::string scores_text = "8,24,16,40", lengths = "1k", gpu_lengths = "4k";
    float scale = 0.125f;
    std::int64_t error_length = 256;
    TimingOptions timing;
    program.flags().add_option("--scores", scores_text, "q k of one row, such as 8,24,-inf");
    program.flags().add_option("--scale", scale, "scale of that row; 0 and negative, too");
    program.flags().add_option("--length", lengths, "length T of the timed head on the CPU");
    program.flags().add_option("--gpu-length", gpu_lengths,
                               "length T of the timed B4 H12 on the GPU");
    program.flags()
        .add_option("--error-length", error_length, "length T of the comparison with fp64")
        ->check(between(1, 4096));
    program.flags()
        .add_option("--head-dim", timing.head_dim, "head dimension d")
        ->check(between(1, 256));
    program.flags()
        .add_option("--runs", timing.runs, "timed runs of each of the two on the CPU")
        ->check(between(1, 100000));

    return program.run(argc, argv, [&] {
        if (!(std::fabs(scale) <= 0x1p126f))
            throw UsageError("--scale must be at most 2^126 in magnitude");
        const auto one_length = [](const std::string& flag, const std::string& text) {
            const auto list = parse_lengths(flag, text);
            if (list.size() != 1 || list[0] < 1 || list[0] > (1 << 20))
                throw UsageError(flag + ": one length from 1 to 1m");
            return list[0];
        };
        timing.length = one_length("--length", lengths);
        timing.gpu_length = one_length("--gpu-length", gpu_lengths);

        show_bases(program, parse_floats("--scores", scores_text), scale);
        show_faults(program);
        show_units(program, timing.head_dim);
        show_cpu_times(program, timing);
        show_gpu_times(program, timing);
        show_errors(program, error_length, timing.head_dim);
    });
}
