#include "chapters/06_benchmark/block_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "chapters/03_blocked_attention/blocked_attention.h"
#include "chapters/06_benchmark/crossover.h"
#include "chapters/06_benchmark/shapes.h"
#include "common/larger.h"
#include "common/progress.h"
#include "common/text_table.h"

namespace fa {
namespace {

constexpr int RUNS = 10, ATTEMPTS = 5;
/// The default may be slower than the best by this factor: sizes that are close change places from
/// run to run and machine to machine. Judged by the fastest runs, which other programs at work on
/// the machine disturb the least.
constexpr double SLACK = 1.5;

/// Chapter 3's blocked attention, Q outside, in tiles of one size. An implementation is made of
/// plain functions, so that the sizes must be known to the compiler.
template <int BLOCK_Q, int BLOCK_KV>
Candidate cpu_blocked() {
    static constexpr TileSize TILES{.q = BLOCK_Q, .kv = BLOCK_KV};
    Candidate c{.implementation = CPU_BLOCKED, .tiles = TILES, .resources = {}};
    c.implementation.workspace_bytes = [](const AttentionProblem& p, const Launch& launch) {
        return blocked_workspace_bytes(p, LoopOrder::q_outer, TILES, launch.thread_count());
    };
    c.implementation.run = [](const AttentionProblem& p, const AttentionTensors& t,
                              std::span<std::byte> workspace, const Launch& launch) {
        blocked_attention(p, t, LoopOrder::q_outer, TILES, workspace, launch.thread_count());
    };
    c.is_default = TILES.q == TileSize{}.q && TILES.kv == TileSize{}.kv;
    return c;
}

std::vector<Family> cpu_families() {
    return {{std::string(CPU_BLOCKED.name),
             {cpu_blocked<16, 16>(), cpu_blocked<32, 32>(), cpu_blocked<32, 128>(),
              cpu_blocked<64, 32>(), cpu_blocked<64, 64>(), cpu_blocked<64, 256>(),
              cpu_blocked<128, 64>(), cpu_blocked<128, 128>(), cpu_blocked<256, 256>()}}};
}

struct Measured {
    const Candidate* candidate = nullptr;
    std::unique_ptr<TimedCase> timed;
    std::vector<double> seconds;  ///< of each run, per call
};

double fastest(const Measured& m) {
    return *std::ranges::min_element(m.seconds);
}

/// The default's fastest time over the best one's; 1 if there is no default among them.
double default_over_best(const std::vector<Measured>& measured) {
    const double best = fastest(*std::ranges::min_element(measured, {}, fastest));
    for (const Measured& m : measured)
        if (m.candidate->is_default) return fastest(m) / best;
    return 1;
}

/// Runs all in turn, so that what disturbs the machine disturbs all of them. Others at work make a
/// run slower, never faster: where the default looks slow, more runs tell whether it is.
void run_in_turn(std::vector<Measured>& measured) {
    for (int attempt = 0; attempt < ATTEMPTS; ++attempt) {
        for (int run = 0; run < RUNS; ++run)
            for (Measured& m : measured)
                m.seconds.push_back(m.timed->run() / static_cast<double>(m.timed->calls()));
        if (default_over_best(measured) <= SLACK) return;
    }
}

std::string what_it_takes(const Measured& m) {
    return m.candidate->resources.empty()
               ? human_bytes(static_cast<double>(m.timed->scratch_bytes())) + " of scratch"
               : m.candidate->resources;
}

/// @param judged whether the default must be close to the best
void show_family(Program& program, const Family& family, const AttentionProblem& problem,
                 const CaseOptions& options, bool judged, Progress& progress,
                 nlohmann::ordered_json& found) {
    std::vector<Measured> measured;
    double worst = 0;
    std::string refusal;
    for (const Candidate& candidate : family.candidates) {
        progress.advance();
        try {
            auto timed = prepare(candidate.implementation, problem, CacheState::warm, options);
            worst = larger_or_nan(worst, timed->check().share);
            measured.push_back({&candidate, std::move(timed), {}});
        } catch (const Unsupported& error) {  // of the problem, or of its tensors
            refusal = error.what();
        } catch (const OutOfMemory& error) {
            refusal = error.what();
        }
    }
    if (measured.empty()) {
        fmt::print("\n{}: no size takes this problem: {}\n", family.name, refusal);
        return;
    }
    run_in_turn(measured);
    const Measured& best = *std::ranges::min_element(measured, {}, fastest);

    TextTable table({"tile", "fastest", "median", "rate", "over the best", "tiles filled",
                     "bytes by the cost model", "what it takes", ""});
    table.left(7).left(8);
    for (const Measured& m : measured) {
        const Candidate& c = *m.candidate;
        const double over_best = fastest(m) / fastest(best);
        table.add({fmt::format("{} x {}", c.tiles.q, c.tiles.kv), human_seconds(fastest(m)),
                   human_seconds(median_of(m.seconds)),
                   human_count(problem.flops() / fastest(m), "FLOP/s"),
                   fmt::format("{:.2f}", over_best),
                   fmt::format("{:.0f} %", 100 * tile_fill(problem, c.tiles.q, c.tiles.kv)),
                   human_bytes(q_outer_cost(problem, c.tiles).bytes), what_it_takes(m),
                   c.is_default ? "default" : ""});
        found.push_back({{"family", family.name},
                         {"block_q", c.tiles.q},
                         {"block_kv", c.tiles.kv},
                         {"len_q", problem.len_q},
                         {"median_ms", 1e3 * median_of(m.seconds)},
                         {"min_ms", 1e3 * fastest(m)},
                         {"tflops", 1e-12 * problem.flops() / median_of(m.seconds)},
                         {"resources", what_it_takes(m)},
                         {"default", c.is_default}});
        if (c.is_default && judged)
            program.checks.at_most(family.name + ": the default's time over the best", over_best,
                                   SLACK);
    }
    fmt::print("\n{}\n{}=> the fastest is {} x {}\n", family.name, table.str(),
               best.candidate->tiles.q, best.candidate->tiles.kv);
    program.checks.at_most(fmt::format("{}, T{}: every size is right, error over the bound",
                                       family.name, problem.len_q),
                           worst, 1);
}

}  // namespace

std::vector<Family> block_size_families([[maybe_unused]] Device device) {
#ifdef FA_CUDA_ENABLED
    if (device == Device::cuda) return cuda_block_size_families();
#endif
    return cpu_families();
}

void show_block_sizes(Program& program, const std::vector<Family>& families,
                      const AttentionProblem& base, const std::vector<std::int64_t>& lengths,
                      Device device, const CaseOptions& options) {
    CaseOptions how = options;
    if (device == Device::cpu) how.threads = 1;  // a tile has to suit the caches of one core
    std::size_t count = 0;
    for (const Family& family : families) count += family.candidates.size();
    auto found = nlohmann::ordered_json::array();
    for (const std::int64_t length : lengths) {
        AttentionProblem problem = base;
        problem.len_q = problem.len_kv = length;
        print_heading(fmt::format("Block sizes, measured: {} T{}",
                                  ShapeSet{.name = {}, .base = base, .lengths = {}}.title(),
                                  length));
        Progress progress("block sizes", static_cast<std::int64_t>(count));
        for (const Family& family : families)
            // A CPU is shared with others, and a goal of speed must not fail a run for that.
            show_family(program, family, problem, how,
                        device == Device::cuda && length == lengths.back(), progress, found);
    }
    program.results.extras["block_sizes"] = std::move(found);
}

}  // namespace fa
