#include "chapters/07_gpt2_124m/matrix_rate.h"

#include <algorithm>
#include <chrono>

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

}  // namespace fa
