#include "chapters/06_benchmark/prediction.h"

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>

#include "chapters/03_blocked_attention/blocked_attention.h"
#include "chapters/04_cuda_tiled/multiprocessor.h"
#include "chapters/04_cuda_tiled/predictions.h"
#include "chapters/06_benchmark/shapes.h"
#include "chapters/06_benchmark/tiles_of.h"
#include "common/cost_model.h"

namespace fa {
namespace {

/// The name that chapter 4's predictions give a kernel of the list. Chapter 5's does the same as
/// the register-tiled one but for its exponentials, which neither waits for.
std::string kernel_of(const Implementation& implementation) {
    return implementation.name == "cuda_tiled" ? "tiled" : "register_tiled";
}

/// Seconds that the slowest unit of an H200's multiprocessors is busy with one tile, all of them at
/// work. The executor counts for it, once for each kernel, head dimension and type.
double seconds_per_tile(const std::string& kernel, const AttentionProblem& problem, TileSize size) {
    static std::map<std::tuple<std::string, std::int64_t, DType>, double> known;
    const auto [place, is_new] = known.try_emplace({kernel, problem.head_dim, problem.dtype}, 0);
    if (!is_new) return place->second;
    AttentionProblem one = problem;
    one.batch = one.heads_q = one.heads_kv = 1;
    one.len_q = size.q;
    one.len_kv = size.kv;
    one.causal = false;
    for (const Prediction& p : predictions(one))
        if (p.name == kernel)
            return place->second = std::max({p.busy.products, p.busy.shared, p.busy.exponentials});
    throw std::logic_error("chapter 4 predicts nothing for " + kernel);
}

/// Chapter 1's steps, but for what its CPU way leaves out of a causal problem: keys that no row of
/// a block sees. Blocks end near the diagonal, so that about the visible scores are left.
std::array<Cost, 3> cpu_naive_cost(const AttentionProblem& problem, DType scores) {
    std::array<Cost, 3> steps = naive_cost(problem, scores);
    const double all = score_bytes(problem, scores);
    if (all == 0) return steps;
    const double share = visible_scores(problem) * static_cast<double>(size_of(scores)) / all;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        steps[i].bytes -= (1 - share) * all * (i == 1 ? 2 : 1);
        steps[i].flops *= share;
        steps[i].exponentials *= share;
    }
    return steps;
}

}  // namespace

// [predicted]
std::optional<double> predicted_seconds(const Implementation& implementation,
                                        const AttentionProblem& problem,
                                        const CeilingsByType& ceilings) {
    if (!implementation.why_unsupported(problem).empty()) return std::nullopt;
    const bool gpu = implementation.device == Device::cuda;
    // Products in the problem's type: on tensor cores, where there are some for it.
    const Ceilings& c = ceilings_for(ceilings, problem.dtype);
    if (implementation.name.find("naive") != std::string_view::npos) {
        double seconds = 0;
        const auto add = [&](const Cost& step) { seconds += seconds_at(c, step); };
        const DType scores = implementation.rounds_scores ? DType::bf16 : DType::f32;
        if (!gpu)
            std::ranges::for_each(cpu_naive_cost(problem, scores), add);
        else if (implementation.rounds_scores)
            std::ranges::for_each(naive_cost(problem, scores), add);
        else  // S in fp32, P in the problem's type
            std::ranges::for_each(cuda_naive_cost(problem), add);
        return seconds;
    }
    const auto tiles = tiles_of(implementation, problem);
    if (!tiles) return std::nullopt;
    if (gpu) {
        const double h200 = Multiprocessor::EXPONENTIALS_PER_CLOCK * Multiprocessor::COUNT *
                            Multiprocessor::CLOCK_HZ;
        const auto count = static_cast<double>(
            tiles_of(problem, static_cast<int>(tiles->q), static_cast<int>(tiles->kv)));
        const double per_tile = seconds_per_tile(kernel_of(implementation), problem, *tiles);
        return std::max(q_outer_cost(problem, *tiles).bytes / c.bytes_per_s,
                        count * per_tile * h200 / c.exponentials_per_s);
    }
    const bool kv_outer = implementation.name == CPU_BLOCKED_KV_OUTER.name;
    return seconds_at(ceilings_for(ceilings, DType::f32),
                      kv_outer ? kv_outer_cost(problem, *tiles) : q_outer_cost(problem, *tiles));
}
// [predicted]

}  // namespace fa
