#include "chapters/01_memory_accounting/accounting.h"

#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>

#include "common/text_table.h"

namespace fa {
namespace {

Cost total(const std::array<Cost, 3>& steps) {
    Cost sum;
    for (const Cost& step : steps) sum += step;
    return sum;
}

/// The three steps one after another: each waits for the slowest of its own parts.
double seconds_of_steps(const Ceilings& ceilings, const std::array<Cost, 3>& steps) {
    double seconds = 0;
    for (const Cost& step : steps) seconds += seconds_at(ceilings, step);
    return seconds;
}

/// What the steps wait for: one word if all wait for the same.
std::string bound_of_steps(const Ceilings& ceilings, const std::array<Cost, 3>& steps) {
    std::string bounds(bound_of(ceilings, steps[0]));
    for (const Cost& step : {steps[1], steps[2]})
        if (const std::string_view bound = bound_of(ceilings, step); bounds != bound)
            bounds.append("/").append(bound);
    return bounds;
}

std::string three_digits(double x) {
    return fmt::format("{:.3g}", x);
}

}  // namespace

AttentionProblem AccountingOptions::at(std::int64_t length) const {
    AttentionProblem problem = shape;
    problem.len_q = problem.len_kv = length;
    return problem;
}

std::int64_t AccountingOptions::on_chip_elements() const {
    return on_chip_bytes / static_cast<std::int64_t>(size_of(shape.dtype));
}

TileSize AccountingOptions::tiles_kv_outside() const {
    return flash_tiles(on_chip_elements(), shape.head_dim);
}

TileSize AccountingOptions::tiles_q_outside() const {
    const TileSize tiles = tiles_kv_outside();
    return {.q = tiles.kv, .kv = tiles.q};
}

void show_held(const AccountingOptions& options) {
    const AttentionProblem& shape = options.shape;
    print_heading("What is held");
    fmt::print(
        "One layer, B{} H{}/{} d{} {}, with S and P in {}. The KV cache is that of {} layers.\n\n",
        shape.batch, shape.heads_q, shape.heads_kv, shape.head_dim, name_of(shape.dtype),
        name_of(options.score_dtype), options.layers);
    TextTable table({"T", "Q+K+V+O", "one S", "S+P", "S / (Q+K+V+O)", "KV cache"});
    for (const std::int64_t length : options.lengths) {
        const AttentionProblem p = options.at(length);
        const double s = score_bytes(p, options.score_dtype);
        table.add({fmt::format("{}", length), human_bytes(qkvo_bytes(p)), human_bytes(s),
                   human_bytes(2 * s), three_digits(s / qkvo_bytes(p)),
                   human_bytes(kv_cache_bytes(p, options.layers))});
    }
    fmt::print("{}", table.str());
}

void show_moved(const AccountingOptions& options) {
    const TileSize kv_outside = options.tiles_kv_outside(), q_outside = options.tiles_q_outside();
    print_heading("What is moved and computed");
    fmt::print(
        "Naive: three kernels, with S and P through memory: 4Td + 4T^2 elements a head.\n"
        "Flash: one kernel, in tiles for M = {} elements ({}) on chip: of the order\n"
        "T^2 d^2 / M. K/V outside in tiles of {} x {}, Q outside in tiles of {} x {}.\n\n",
        options.on_chip_elements(), human_bytes(static_cast<double>(options.on_chip_bytes)),
        kv_outside.q, kv_outside.kv, q_outside.q, q_outside.kv);
    TextTable table({"T", "FLOPs, naive", "flash", "exps, naive", "flash", "bytes, naive",
                     "flash K/V outside", "flash Q outside", "naive/flash"});
    for (const std::int64_t length : options.lengths) {
        const AttentionProblem p = options.at(length);
        const Cost naive = total(naive_cost(p, options.score_dtype));
        const Cost kv = kv_outer_cost(p, kv_outside), q = q_outer_cost(p, q_outside);
        table.add({fmt::format("{}", length), human_count(naive.flops, ""),
                   human_count(q.flops, ""), human_count(naive.exponentials, ""),
                   human_count(q.exponentials, ""), human_bytes(naive.bytes), human_bytes(kv.bytes),
                   human_bytes(q.bytes), three_digits(naive.bytes / q.bytes)});
    }
    fmt::print("{}", table.str());
}

void show_times(const AccountingOptions& options) {
    const Ceilings& c = options.ceilings;
    print_heading("What that takes at best");
    fmt::print(
        "Ceilings of {}: {:g} TB/s, {:g} TFLOP/s, {:.3g} T exponentials/s. A kernel takes as long "
        "as\n"
        "the slowest of its three parts; the naive way is three kernels, one after another. Flash "
        "is\n"
        "the one with Q outside.\n\n",
        c.name, c.bytes_per_s / 1e12, c.flops_per_s / 1e12, c.exponentials_per_s / 1e12);
    TextTable table({"T", "S=QK'", "P=softmax(S)", "O=PV", "naive", "waits for", "flash",
                     "waits for", "naive/flash"});
    for (const std::int64_t length : options.lengths) {
        const AttentionProblem p = options.at(length);
        const std::array<Cost, 3> steps = naive_cost(p, options.score_dtype);
        const Cost flash = q_outer_cost(p, options.tiles_q_outside());
        const double naive = seconds_of_steps(c, steps);
        table.add({fmt::format("{}", length), human_seconds(seconds_at(c, steps[0])),
                   human_seconds(seconds_at(c, steps[1])), human_seconds(seconds_at(c, steps[2])),
                   human_seconds(naive), bound_of_steps(c, steps),
                   human_seconds(seconds_at(c, flash)), std::string(bound_of(c, flash)),
                   three_digits(naive / seconds_at(c, flash))});
    }
    fmt::print("{}", table.str());
}

void show_longest(Program& program, const AccountingOptions& options) {
    using BytesAt = std::function<double(std::int64_t)>;
    const double rows = static_cast<double>(options.shape.batch * options.shape.heads_q);
    const std::vector<std::pair<std::string, BytesAt>> ways{
        {"naive: Q, K, V, O, S, P",
         [&](std::int64_t t) {
             return qkvo_bytes(options.at(t)) + 2 * score_bytes(options.at(t), options.score_dtype);
         }},
        {"flash: Q, K, V, O, LSE",
         [&](std::int64_t t) {
             return qkvo_bytes(options.at(t)) + sizeof(float) * rows * static_cast<double>(t);
         }},
        {fmt::format("KV cache, {} layers", options.layers),
         [&](std::int64_t t) { return kv_cache_bytes(options.at(t), options.layers); }},
    };

    print_heading("The longest T that fits");
    std::vector<std::string> headers{"memory"};
    for (const auto& [name, bytes_at] : ways) headers.push_back(name);
    TextTable table(headers);
    bool longest = true;
    for (const double memory : options.memories) {
        std::vector<std::string> cells{human_bytes(memory)};
        for (const auto& [name, bytes_at] : ways) {
            const std::int64_t length = largest_length(memory, bytes_at);
            const bool all = length == LONGEST_LENGTH;
            longest =
                longest && bytes_at(length) <= memory && (all || bytes_at(length + 1) > memory);
            cells.push_back(all ? "2^40 or more" : fmt::format("{}", length));
        }
        table.add(cells);
    }
    fmt::print("{}", table.str());
    program.checks.that("every longest T fits, and T + 1 does not", "yes", longest ? "yes" : "no",
                        longest);
}

nlohmann::ordered_json to_json(const AccountingOptions& options) {
    auto rows = nlohmann::ordered_json::array();
    for (const std::int64_t length : options.lengths) {
        const AttentionProblem p = options.at(length);
        const std::array<Cost, 3> steps = naive_cost(p, options.score_dtype);
        const Cost naive = total(steps);
        const Cost kv = kv_outer_cost(p, options.tiles_kv_outside());
        const Cost q = q_outer_cost(p, options.tiles_q_outside());
        rows.push_back({{"length", length},
                        {"qkvo_bytes", qkvo_bytes(p)},
                        {"score_bytes", score_bytes(p, options.score_dtype)},
                        {"kv_cache_bytes", kv_cache_bytes(p, options.layers)},
                        {"naive_flops", naive.flops},
                        {"naive_moved_bytes", naive.bytes},
                        {"naive_seconds", seconds_of_steps(options.ceilings, steps)},
                        {"flash_flops", q.flops},
                        {"flash_exponentials", q.exponentials},
                        {"flash_kv_outside_moved_bytes", kv.bytes},
                        {"flash_q_outside_moved_bytes", q.bytes},
                        {"flash_seconds", seconds_at(options.ceilings, q)}});
    }
    return rows;
}

}  // namespace fa
