#include "chapters/07_gpt2_124m/matrix_rate.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/random.h"

namespace fa {

double measure_matrix_rate(const Gpt2& model, const Arithmetic& arithmetic, std::uint64_t seed) {
    constexpr std::int64_t ROWS = 2048;
    constexpr double ENOUGH_SECONDS = 0.5;
    constexpr int FEWEST_RUNS = 3;
    const LinearWeights& layer = model.weights.blocks.front().expand;
    std::vector<float> x(static_cast<std::size_t>(ROWS * layer.in));
    std::vector<float> out(static_cast<std::size_t>(ROWS * layer.out));
    Random(seed).fill_normal(x);

    double best = 0, spent = 0;
    for (int run = 0; run < FEWEST_RUNS || spent < ENOUGH_SECONDS; ++run) {
        const auto start = std::chrono::steady_clock::now();
        linear(layer, x.data(), ROWS, out.data(), Finish::store, arithmetic);
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        best = std::max(best, 2.0 * static_cast<double>(ROWS * layer.in * layer.out) / seconds);
        spent += seconds;
    }
    return best;
}

#ifndef FA_CUDA_ENABLED
double measure_cuda_matrix_rate(const Gpt2&, DType, std::int64_t, std::uint64_t) {
    throw std::invalid_argument("the rate of a GPU was asked for; this build has no CUDA");
}
#endif

OutsideAttention outside_attention(const Gpt2& model, const EvaluationPlan& plan, const Run& run,
                                   int threads, std::uint64_t seed) {
    const bool on_gpu = run.implementation->device == Device::cuda;
    return {.run = &run,
            .flops = model.config.matrix_flops_per_token() * static_cast<double>(plan.count),
            .flops_per_second =
                on_gpu ? measure_cuda_matrix_rate(model, run.activations,
                                                  plan.most_sequences() * plan.longest(), seed)
                       : measure_matrix_rate(model, {run.activations, threads}, seed),
            .seconds = run.evaluation.seconds - run.evaluation.attention_seconds};
}

nlohmann::ordered_json to_json(const OutsideAttention& outside) {
    return {{"implementation", outside.run->implementation->name},
            {"device", name_of(outside.run->implementation->device)},
            {"dtype", name_of(outside.run->activations)},
            {"matrix_flops", outside.flops},
            {"matrix_flops_per_s", outside.flops_per_second},
            {"predicted_seconds", outside.predicted_seconds()},
            {"seconds", outside.seconds},
            {"bound_share", outside.bound_share()}};
}

}  // namespace fa
