#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "chapters/01_memory_accounting/naive_attention.h"
#include "chapters/03_blocked_attention/blocked_attention.h"
#include "chapters/03_blocked_attention/experiments.h"
#include "chapters/03_blocked_attention/fast_attention.h"
#include "chapters/03_blocked_attention/machine_rates.h"
#include "chapters/03_blocked_attention/simd.h"
#include "common/aligned_buffer.h"
#include "common/attention_data.h"
#include "common/progress.h"
#include "common/stopwatch.h"
#include "common/text_table.h"

namespace fa {
namespace {

/// One way to compute attention, timed and predicted.
struct Contender {
    const Implementation* implementation;
    std::function<std::size_t(const AttentionProblem&, int threads)> workspace_bytes;
    std::function<void(const AttentionProblem&, const AttentionTensors&, std::span<std::byte>,
                       int threads)>
        run;
    /// Arithmetic and traffic beyond the caches; exponentials of Eigen or of simd.h.
    std::function<Cost(const AttentionProblem&)> cost;
    bool simd_exponentials = false;
};

/// Costs with the bytes left out: tiles and blocks of K and V come from the caches.
Cost without_bytes(Cost cost) {
    cost.bytes = 0;
    return cost;
}

Contender through_door(const Implementation& implementation,
                       std::function<Cost(const AttentionProblem&)> cost) {
    return {
        &implementation,
        [&](const AttentionProblem& p, int threads) {
            return implementation.workspace_bytes(p, {.threads = threads});
        },
        [&](const AttentionProblem& p, const AttentionTensors& t, std::span<std::byte> workspace,
            int threads) { attention(implementation, p, t, workspace, {.threads = threads}); },
        std::move(cost)};
}

Contender blocked(const Implementation& implementation, LoopOrder order, TileSize tiles) {
    return {
        &implementation,
        [=](const AttentionProblem& p, int threads) {
            return blocked_workspace_bytes(p, order, tiles, threads);
        },
        [=](const AttentionProblem& p, const AttentionTensors& t, std::span<std::byte> workspace,
            int threads) { blocked_attention(p, t, order, tiles, workspace, threads); },
        [=](const AttentionProblem& p) {
            return without_bytes(order == LoopOrder::q_outer ? q_outer_cost(p, tiles)
                                                             : kv_outer_cost(p, tiles));
        }};
}

/// S and P, written and read, pass through memory; keys beyond a block's last visible one do not.
Cost naive_cost_as_run(const AttentionProblem& p) {
    Cost cost;
    for (const Cost& step : naive_cost(p, DType::f32)) cost += step;
    const double visible = p.flops() / (4.0 * static_cast<double>(p.batch * p.heads_q * p.len_q) *
                                        static_cast<double>(p.len_kv * p.head_dim));
    return {.bytes = cost.bytes * visible,
            .flops = cost.flops * visible,
            .exponentials = cost.exponentials * visible};
}

/// Each vector of queries stops at its own diagonal; a correction once in BLOCK_KV keys is nothing.
Cost fast_cost_as_run(const AttentionProblem& p) {
    Cost cost = q_outer_cost(p, {.q = simd::LANES, .kv = 1});
    return {.bytes = 0,
            .flops = cost.flops,
            .exponentials = cost.flops / (4.0 * static_cast<double>(p.head_dim))};
}

std::vector<Contender> contenders(const Options& options) {
    std::vector<Contender> list = {
        through_door(CPU_NAIVE, naive_cost_as_run),
        blocked(CPU_BLOCKED_KV_OUTER, LoopOrder::kv_outer, options.tiles),
        blocked(CPU_BLOCKED, LoopOrder::q_outer, options.tiles),
        through_door(CPU_FAST, fast_cost_as_run),
    };
    list.back().simd_exponentials = true;
    return list;
}

/// On a CPU the same units do products and exponentials, one after the other; so the parts add up.
double predicted_seconds(const Cost& cost, const MachineRates& rates, bool simd_exponentials) {
    return cost.flops / rates.product_flops +
           cost.exponentials /
               (simd_exponentials ? rates.simd_exponentials : rates.eigen_exponentials) +
           cost.bytes / rates.copied_bytes;
}

/// Times of the runs that the checks and goals look at, by (implementation, length, threads).
using Times = std::map<std::tuple<std::string_view, std::int64_t, int>, double>;

template <class T>
Times time_all(Program& program, const Options& options, const std::vector<MachineRates>& machine,
               TextTable& table) {
    Times times;
    const std::vector<Contender> list = contenders(options);
    Progress progress(
        "speed", static_cast<std::int64_t>(options.lengths.size() * machine.size() * list.size()));
    for (const std::int64_t length : options.lengths) {
        AttentionProblem p = options.problem;
        p.len_q = p.len_kv = length;
        AttentionData<T> data(p, program.seed);
        for (const MachineRates& rates : machine) {
            for (const Contender& contender : list) {
                const std::string name(contender.implementation->name);
                nlohmann::ordered_json row = Results::row(*contender.implementation, p);
                row["threads"] = rates.threads;
                const std::size_t scratch = contender.workspace_bytes(p, rates.threads);
                std::vector<std::string> cells = {fmt::format("{}", length),
                                                  fmt::format("{}", rates.threads), name};
                if (static_cast<double>(scratch) > options.memory_limit) {
                    row["status"] = "unsupported";
                    row["reason"] = fmt::format("needs {} of scratch, more than --memory-limit",
                                                human_bytes(static_cast<double>(scratch)));
                    cells.insert(cells.end(), {"-", "too large", "", "", "", "", ""});
                } else {
                    const AlignedBuffer workspace(scratch);
                    const Timing timing = time_runs(
                        [&] { contender.run(p, data.tensors(), workspace.bytes(), rates.threads); },
                        3, 0.2);
                    const double predicted =
                        predicted_seconds(contender.cost(p), rates, contender.simd_exponentials);
                    const double rate = p.flops() / timing.fastest;
                    times[{contender.implementation->name, length, rates.threads}] = timing.fastest;
                    cells.insert(cells.end(),
                                 {fmt::format("{}", timing.runs), human_seconds(timing.median),
                                  human_seconds(timing.fastest), fmt::format("{:.1f}", rate * 1e-9),
                                  fmt::format("{:.2f}", rate / rates.product_flops),
                                  human_seconds(predicted),
                                  fmt::format("{:.2f}", timing.fastest / predicted)});
                    row["status"] = "ok";
                    row["median_ms"] = timing.median * 1e3;
                    row["min_ms"] = timing.fastest * 1e3;
                    row["runs"] = timing.runs;
                    row["tflops"] = rate * 1e-12;
                    row["bound_share"] = predicted / timing.fastest;
                    row["product_share"] = rate / rates.product_flops;
                    row["scratch_bytes"] = scratch;
                }
                table.add(std::move(cells));
                program.results.rows.push_back(std::move(row));
                progress.advance();
            }
            table.rule();
        }
    }
    return times;
}

}  // namespace

void show_speed(Program& program, const Options& options,
                const std::vector<MachineRates>& machine) {
    TextTable table({"N", "threads", "implementation", "runs", "median", "fastest", "GFLOP/s",
                     "of matrix product", "predicted", "measured / predicted"});
    table.left(2);
    const Times times = with_element_type(options.problem.dtype, [&](auto element) {
        return time_all<decltype(element)>(program, options, machine, table);
    });
    const AttentionProblem& p = options.problem;
    print_heading(fmt::format("Speed, measured: B{} H{} d{} {} {}, warm", p.batch, p.heads_q,
                              p.head_dim, name_of(p.dtype), p.causal ? "causal" : "full"));
    fmt::print("{}\n\n{}", describe_machine(program.results.context), table.str());

    // Goals of speed are reported; on a busy machine they must not fail a run. What must hold on
    // any machine is a check.
    const std::int64_t longest = *std::max_element(options.lengths.begin(), options.lengths.end());
    fmt::print("\ncpu_fast at N={} over the matrix product, goal 0.8:", longest);
    for (const MachineRates& rates : machine) {
        AttentionProblem problem = p;
        problem.len_q = problem.len_kv = longest;
        const auto time = times.find({CPU_FAST.name, longest, rates.threads});
        if (time == times.end()) {
            fmt::print(" not run with {} thread(s).", rates.threads);
            continue;
        }
        const double rate = problem.flops() / time->second;
        fmt::print(" {:.2f} with {} thread(s).", rate / rates.product_flops, rates.threads);
    }
    fmt::print("\n");
#ifdef NDEBUG
    double times_faster = 0;
    for (const std::int64_t length : options.lengths) {
        const auto naive = times.find({CPU_NAIVE.name, length, 1});
        const auto fast = times.find({CPU_FAST.name, length, 1});
        if (naive != times.end() && fast != times.end())
            times_faster = std::max(times_faster, naive->second / fast->second);
    }
    if (times_faster > 0)
        program.checks.at_least("cpu_fast against cpu_naive, 1 thread, best length, times faster",
                                times_faster, 1.0);
#endif
}

}  // namespace fa
