/// @file
/// ch06_benchmark: time, memory, accuracy of every implementation, the crossover with the naive
/// way, and the block sizes.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <regex>

#include "chapters/06_benchmark/accuracy.h"
#include "chapters/06_benchmark/block_sizes.h"
#include "chapters/06_benchmark/crossover.h"
#include "chapters/06_benchmark/measured_ceilings.h"
#include "chapters/06_benchmark/report.h"
#include "chapters/06_benchmark/timing_methods.h"
#include "chapters/implementations.h"
#include "common/text_table.h"
#ifdef FA_CUDA_ENABLED
#include "common/cuda/device.h"
#endif

namespace {

using namespace fa;

/// Everything that the flags say, as text where it is text.
struct Flags {
    std::string shapes = "causal", lengths, dtype, mask, implementations, cache, parts = "all";
    std::string accuracy_lengths, crossover_lengths;
    std::int64_t batch = 0, heads = 0, heads_kv = 0, head_dim = 0;
    int repetitions = 10, threads = 0;
    double memory_limit_gib = 0, power_seconds = 0, rest_seconds = 0;
};

const std::vector<std::string> PARTS{"timing", "accuracy", "crossover", "blocks", "methods"};

void add_flags(CLI::App& app, Flags& f) {
    const CLI::Validator count = between(1, 1 << 20);
    app.add_option("--shapes", f.shapes, "sets of shapes, by name; \"all\" for all");
    app.add_option("--lengths", f.lengths, "lengths T, instead of those of the set");
    app.add_option("--batch", f.batch, "sequences B, instead of the set's")->check(count);
    app.add_option("--heads", f.heads, "query heads H, instead of the set's")->check(count);
    app.add_option("--heads-kv", f.heads_kv, "key/value heads; default: as many as query heads")
        ->check(count);
    app.add_option("--head-dim", f.head_dim, "head dimension d, instead of the set's")
        ->check(between(1, 4096));
    app.add_option("--dtype", f.dtype, "fp32, fp16 or bf16, instead of the set's")
        ->check(CLI::IsMember({"fp32", "fp16", "bf16"}));
    app.add_option("--mask", f.mask, "causal or full, instead of the set's")
        ->check(CLI::IsMember({"causal", "full"}));
    app.add_option("--implementations", f.implementations,
                   "regular expression that their names contain");
    app.add_option("--cache", f.cache, "warm or cold; default: both on a GPU, warm on a CPU")
        ->check(CLI::IsMember({"warm", "cold"}));
    app.add_option("--repetitions", f.repetitions, "of each row, for the median")
        ->check(between(1, 1000));
    app.add_option("--memory-limit", f.memory_limit_gib,
                   "GiB of the card (or machine) to pretend; 0: what there is")
        ->check(at_least(0));
    app.add_option(
           "--power", f.power_seconds,
           "seconds of more runs for each row on a GPU, for the mean power, such as 0.4; 0: "
           "none")
        ->check(between(0, 60));
    app.add_option(
           "--rest", f.rest_seconds,
           "seconds without work before each repetition, such as 0.1, for the rate of a card "
           "that is not at its limit of power; 0: none")
        ->check(between(0, 60));
    app.add_option("--threads", f.threads, "CPU threads; 0: all")->check(between(0, 1024));
    app.add_option("--parts", f.parts,
                   fmt::format("of the program: {}, or all", fmt::join(PARTS, ", ")));
    app.add_option("--accuracy-lengths", f.accuracy_lengths, "lengths of the accuracy table");
    app.add_option("--crossover-lengths", f.crossover_lengths, "lengths of the crossover table");
    app.footer(
        "Flags of Google Benchmark (--benchmark_filter, --benchmark_list_tests,\n"
        "--benchmark_min_time, --benchmark_format=console, --benchmark_out, ...) pass through.");
}

std::vector<std::string> chosen_parts(const std::string& text) {
    std::vector<std::string> chosen;
    for (const std::string& part : split_at_commas(text)) {
        if (part == "all")
            chosen.insert(chosen.end(), PARTS.begin(), PARTS.end());
        else if (std::ranges::find(PARTS, part) != PARTS.end())
            chosen.push_back(part);
        else
            throw UsageError(
                fmt::format("--parts: \"{}\" is none of all, {}", part, fmt::join(PARTS, ", ")));
    }
    return chosen;
}

/// @throws UsageError if there is no such problem at one of the lengths
void require_possible(AttentionProblem problem, const std::vector<std::int64_t>& lengths) {
    for (const std::int64_t length : lengths) {
        problem.len_q = problem.len_kv = length;
        try {
            validate(problem);
        } catch (const std::invalid_argument& error) {
            throw UsageError(fmt::format("{}: {}", describe(problem), error.what()));
        }
    }
}

/// Lengths from 1 on, rising, each once; those of `standard` if there is no text.
/// @throws UsageError
std::vector<std::int64_t> sorted_lengths(const std::string& flag, const std::string& text,
                                         const std::string& standard = "") {
    constexpr std::int64_t LONGEST = 1 << 24;
    std::vector<std::int64_t> lengths =
        parse_lengths(flag, text.empty() ? standard : text, 1, LONGEST);
    std::ranges::sort(lengths);
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
    return lengths;
}

/// The sets that the flags choose; flags on the shape change all of them.
std::vector<ShapeSet> sets_of(const Flags& f, Device device) {
    std::vector<ShapeSet> sets = chosen_sets(shape_sets(device), "--shapes", f.shapes);
    for (ShapeSet& set : sets) {
        AttentionProblem& p = set.base;
        if (!f.lengths.empty()) set.lengths = sorted_lengths("--lengths", f.lengths);
        if (f.batch > 0) p.batch = f.batch;
        if (f.heads > 0) p.heads_q = p.heads_kv = f.heads;
        if (f.heads_kv > 0) p.heads_kv = f.heads_kv;
        if (f.head_dim > 0) p.head_dim = f.head_dim;
        if (!f.dtype.empty()) p.dtype = parse_dtype("--dtype", f.dtype);
        if (!f.mask.empty()) p.causal = f.mask == "causal";
        require_possible(p, set.lengths);
    }
    return sets;
}

/// The implementations of a device whose names contain the pattern. @throws UsageError
std::vector<const Implementation*> implementations_of(const std::string& pattern, Device device) {
    std::vector<const Implementation*> chosen;
    std::vector<std::string_view> names;
    try {
        const std::regex wanted(pattern);
        for (const Implementation& implementation : all_implementations()) {
            if (implementation.device != device) continue;
            names.push_back(implementation.name);
            const std::string name(implementation.name);
            if (std::regex_search(name, wanted)) chosen.push_back(&implementation);
        }
    } catch (const std::regex_error& error) {
        throw UsageError(fmt::format("--implementations: \"{}\": {}", pattern, error.what()));
    }
    if (chosen.empty())
        throw UsageError(fmt::format("--implementations: \"{}\" fits none of those on {}: {}",
                                     pattern, name_of(device), fmt::join(names, ", ")));
    return chosen;
}

/// Those whose names contain the pattern, on the CPU and on the GPU or, where there is none, on the
/// executor: errors, unlike times, can be compared across devices.
std::vector<const Implementation*> judged_for_accuracy(const std::string& pattern, Device device) {
    const Device kernels = device == Device::cuda ? Device::cuda : Device::executor;
    std::vector<const Implementation*> judged;
    for (const Implementation& implementation : all_implementations())
        if ((implementation.device == Device::cpu || implementation.device == kernels) &&
            std::regex_search(std::string(implementation.name), std::regex(pattern)))
            judged.push_back(&implementation);
    return judged;
}

std::vector<CacheState> caches_of(const std::string& text, Device device) {
    if (device != Device::cuda && text == "cold")
        throw UsageError("--cache cold: CPU implementations are timed with warm caches only");
    if (text == "warm" || device != Device::cuda) return {CacheState::warm};
    if (text == "cold") return {CacheState::cold};
    return {CacheState::cold, CacheState::warm};
}

double cache_bytes(Device device) {
#ifdef FA_CUDA_ENABLED
    if (device == Device::cuda) return static_cast<double>(gpu_properties().l2_bytes);
#endif
    static_cast<void>(device);
    return 0;
}

void print_ceilings(const Ceilings& c, DType dtype) {
    fmt::print("{}: {} products {}, memory {}, exponentials {}\n", c.name, name_of(dtype),
               human_count(c.flops_per_s, "FLOP/s"), human_count(c.bytes_per_s, "B/s"),
               human_count(c.exponentials_per_s, "/s"));
}

/// The ceilings for the sets' types, and for fp32, in which the kernels so far compute. Measured
/// before the rows, printed and kept in the results.
CeilingsByType ceilings_of(Program& program, const std::vector<ShapeSet>& sets, Device device,
                           int threads) {
    print_heading("Ceilings, measured");
    std::vector<DType> types;
    for (const ShapeSet& set : sets) types.push_back(set.base.dtype);
    types.push_back(DType::f32);
    CeilingsByType list;
    auto found = nlohmann::ordered_json::array();
    for (const DType dtype : types) {
        if (std::ranges::find(list, dtype, &CeilingsByType::value_type::first) != list.end())
            continue;
        const Ceilings c = measure_ceilings(device, dtype, threads);
        print_ceilings(c, dtype);
        found.push_back({{"name", c.name},
                         {"dtype", name_of(dtype)},
                         {"bytes_per_s", c.bytes_per_s},
                         {"flops_per_s", c.flops_per_s},
                         {"exponentials_per_s", c.exponentials_per_s}});
        list.emplace_back(dtype, c);
    }
    program.results.extras["ceilings"] = std::move(found);
    return list;
}

/// Without those whose name contains "naive", and the one plain naive implementation.
std::vector<const Implementation*> fused_among(
    const std::vector<const Implementation*>& implementations) {
    std::vector<const Implementation*> fused;
    std::ranges::copy_if(implementations, std::back_inserter(fused), [](const Implementation* i) {
        return i->name.find("naive") == std::string_view::npos;
    });
    return fused;
}

void run(Program& program, const Flags& f, const std::vector<std::string>& benchmark_flags) {
    BenchmarkRun benchmark(BenchmarkFlags(benchmark_flags), f.repetitions);
    const Device device = program.where();
    const bool gpu = device == Device::cuda;
    std::vector<std::string> parts = chosen_parts(f.parts);
    if (benchmark.lists_only() || benchmark.filters()) parts = {"timing"};
    const auto wants = [&](std::string_view part) {
        return std::ranges::find(parts, part) != parts.end();
    };

    const std::vector<ShapeSet> sets = sets_of(f, device);
    const std::vector<std::int64_t> accuracy_lengths = sorted_lengths(
        "--accuracy-lengths", f.accuracy_lengths, gpu ? "512,1000,1024,2048" : "128,250,256,512");
    const std::vector<std::int64_t> crossover_lengths =
        sorted_lengths("--crossover-lengths", f.crossover_lengths,
                       gpu ? "16,32,64,128,256,512,1k,2k,4k,8k,16k" : "4,8,16,32,64,128,256");
    if (crossover_lengths.size() < 2)
        throw UsageError("--crossover-lengths: two are needed, for a crossing lies between two");
    require_possible(sets.front().base, crossover_lengths);
    require_possible(sets.front().base, accuracy_lengths);
    const auto implementations = implementations_of(f.implementations, device);
    const CaseOptions options{.seed = program.seed,
                              .threads = f.threads,
                              .memory_limit = f.memory_limit_gib * 1024 * 1024 * 1024,
                              .power_seconds = f.power_seconds,
                              .rest_seconds = f.rest_seconds};
    std::vector<Row> rows = make_rows(sets,
                                      {.implementations = implementations,
                                       .caches = caches_of(f.cache, device),
                                       .case_options = options},
                                      cache_bytes(device));
    if (benchmark.lists_only()) {
        benchmark.list(rows);
        throw Finished();
    }
    benchmark.require_one_of(rows);
    const AttentionProblem& shape = sets.front().base;
    const std::vector<const Implementation*> fused = fused_among(implementations);
    for (const std::string_view part : {"crossover", "methods"})
        if (fused.empty() && std::erase(parts, part) > 0 && f.parts != "all")
            throw UsageError(fmt::format(
                "--parts {}: --implementations \"{}\" fits none that is fused, and it needs one",
                part, f.implementations));
    const Implementation& naive = implementation_named(gpu ? "cuda_naive" : "cpu_naive");

    if (wants("timing")) {
        const auto ceilings = ceilings_of(program, sets, device, f.threads);
        benchmark.run(rows, options, ceilings);
        if (options.memory_limit > 0)
            program.results.extras["memory_limit_bytes"] = options.memory_limit;
        if (options.rest_seconds > 0) program.results.extras["rest_seconds"] = options.rest_seconds;
        report_rows(program, sets, rows, ceilings);
    }
    if (wants("accuracy")) {
        AttentionProblem problem = shape;
        problem.batch = gpu ? 2 : 1;
        if (f.dtype.empty()) problem.dtype = DType::bf16;
        if (f.batch > 0) problem.batch = f.batch;
        show_accuracy(program, problem, accuracy_lengths,
                      judged_for_accuracy(f.implementations, device));
    }
    if (wants("crossover"))
        show_crossover(program, shape, crossover_lengths, naive, fused, options);
    if (wants("blocks")) {
        show_block_sizes(
            program, block_size_families(device), shape,
            gpu ? std::vector<std::int64_t>{512, 4096} : std::vector<std::int64_t>{1024}, device,
            options);
    }
    if (wants("methods"))
        show_timing_methods(
            program, *fused.back(), shape,
            gpu ? std::vector<std::int64_t>{256, 4096} : std::vector<std::int64_t>{64, 1024},
            options);
}

}  // namespace

int main(int argc, char** argv) {
    Program program("ch06_benchmark",
                    "Time, memory and accuracy of every attention; when naive wins; block sizes.");
    Flags flags;
    add_flags(program.flags(), flags);
    // Google Benchmark's flags are its own to parse.
    std::vector<const char*> ours;
    std::vector<std::string> benchmarks;
    for (int i = 0; i < argc; ++i)
        if (std::string_view(argv[i]).starts_with("--benchmark_"))
            benchmarks.emplace_back(argv[i]);
        else
            ours.push_back(argv[i]);
    return program.run(static_cast<int>(ours.size()), ours.data(),
                       [&] { run(program, flags, benchmarks); });
}
