/// @file
/// ch01_memory_accounting: what attention holds, moves and computes, by formula and by measurement.

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "chapters/01_memory_accounting/accounting.h"
#include "chapters/01_memory_accounting/measured_peaks.h"
#include "common/cost_model.h"
#include "common/machine.h"

using namespace fa;

int main(int argc, char** argv) {
    Program program("ch01_memory_accounting",
                    "What attention holds, moves and computes: formulas beside measured peaks.");
    AccountingOptions options;
    std::string lengths = "512,1k,2k,4k,8k,16k", measured = "1k,2k,4k", memories = "24,80";
    std::string dtype = "bf16", score_dtype;
    std::int64_t heads_kv = 0, on_chip_kib = 227;
    int threads = 1;
    double copy_rate = options.ceilings.bytes_per_s / 1e12;
    double product_rate = options.ceilings.flops_per_s / 1e12;
    double exp_rate = options.ceilings.exponentials_per_s / 1e12;

    CLI::App& flags = program.flags();
    const CLI::Validator count = between(1, 1 << 20);
    flags.add_option("--lengths", lengths, "lengths T of the tables");
    flags.add_option("--batch", options.shape.batch, "sequences B")->check(count);
    flags.add_option("--heads", options.shape.heads_q, "query heads H")->check(count);
    flags.add_option("--heads-kv", heads_kv, "key/value heads; 0: as many as query heads")
        ->check(between(0, 1 << 20));
    flags.add_option("--head-dim", options.shape.head_dim, "head dimension d")
        ->check(between(1, 4096));
    flags.add_option("--dtype", dtype, "type of Q, K, V and O: fp32, fp16 or bf16");
    flags.add_option("--score-dtype", score_dtype, "type of S and P; default: that of Q");
    flags.add_flag("--causal", options.shape.causal, "with a causal mask");
    flags.add_option("--layers", options.layers, "layers of the model, for the KV cache")
        ->check(count);
    flags.add_option("--memory", memories, "memories to fit into, in GiB");
    flags
        .add_option("--on-chip", on_chip_kib, "on-chip memory M, in KiB; the default is an H100's")
        ->check(count);
    flags.add_option("--copy-rate", copy_rate, "ceiling in TB/s")->check(above_zero());
    flags.add_option("--product-rate", product_rate, "ceiling in TFLOP/s")->check(above_zero());
    flags.add_option("--exp-rate", exp_rate, "ceiling in 10^12 exponentials/s")
        ->check(above_zero());
    flags.add_option("--measure", measured, "lengths T to measure (one fp32 head of --head-dim)");
    flags.add_option("--threads", threads, "CPU threads of the measured runs")
        ->check(between(1, 1024));

    return program.run(argc, argv, [&] {
        AttentionProblem& shape = options.shape;
        shape.heads_kv = heads_kv == 0 ? shape.heads_q : heads_kv;
        if (shape.heads_q % shape.heads_kv != 0)
            throw UsageError(fmt::format("--heads {} is not a multiple of --heads-kv {}",
                                         shape.heads_q, shape.heads_kv));
        shape.dtype = parse_dtype("--dtype", dtype);
        options.score_dtype =
            score_dtype.empty() ? shape.dtype : parse_dtype("--score-dtype", score_dtype);
        options.lengths = parse_lengths("--lengths", lengths, 1, 1 << 24);
        for (const float gib : parse_floats("--memory", memories)) {
            if (!(gib > 0 && std::isfinite(gib)))
                throw UsageError(fmt::format("--memory: {} GiB is not above 0 and finite", gib));
            options.memories.push_back(double{gib} * 1024 * 1024 * 1024);
        }
        const std::vector<std::int64_t> lengths_measured =
            parse_lengths("--measure", measured, 1, 1 << 16);
        for (const std::int64_t length : lengths_measured) {
            const AttentionProblem problem{
                .len_q = length, .len_kv = length, .head_dim = shape.head_dim};
            check_fits_in_memory(problem, 2 * score_bytes(problem, DType::f32));
        }
        options.on_chip_bytes = on_chip_kib * 1024;
        Ceilings& ceilings = options.ceilings;
        for (const char* flag : {"--copy-rate", "--product-rate", "--exp-rate"})
            if (flags.count(flag) > 0) ceilings.name = "the machine described by the flags";
        ceilings.bytes_per_s = copy_rate * 1e12;
        ceilings.flops_per_s = product_rate * 1e12;
        ceilings.exponentials_per_s = exp_rate * 1e12;

        show_held(options);
        show_moved(options);
        show_times(options);
        show_longest(program, options);
        show_measured_peaks(program, lengths_measured, shape.head_dim, shape.causal, threads);
        program.results.extras["accounting"] = to_json(options);
    });
}
