#include "chapters/03_blocked_attention/machine_rates.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "chapters/03_blocked_attention/best_rate.h"
#include "chapters/03_blocked_attention/simd.h"
#include "common/machine.h"
#include "common/text_table.h"

namespace fa {
namespace {

/// What the threads together may fill with data: more would measure how a machine swaps.
std::size_t memory_to_use() {
    return static_cast<std::size_t>(machine_memory_bytes() / 8);
}

double product_rate(int threads) {
    double best = 0;
    for (const Eigen::Index n : {256, 512, 1024}) {
        const auto bytes = 3 * sizeof(float) * static_cast<std::size_t>(n * n);
        if (best > 0 && bytes * static_cast<std::size_t>(threads) > memory_to_use()) break;
        const auto make = [n] {
            return [a = Eigen::MatrixXf(Eigen::MatrixXf::Random(n, n)),
                    b = Eigen::MatrixXf(Eigen::MatrixXf::Random(n, n)),
                    c = Eigen::MatrixXf(n, n)]() mutable { c.noalias() = a * b; };
        };
        const double flops = 2.0 * static_cast<double>(n) * static_cast<double>(n * n);
        best = std::max(best, best_rate(threads, n == 1024 ? 8 : 20, flops, make));
    }
    return best;
}

/// Multiply-adds on registers alone, as many sums at a time as simd.h's products have.
double register_rate(int threads) {
    constexpr int SUMS = simd::REGISTERS * 3 / 4, STEPS = 1'000'000;
    const auto make = [] {
        return [seed = 0.5f]() mutable {
            std::array<simd::Floats, SUMS> sums{};
            for (simd::Floats& sum : sums) sum = simd::broadcast(seed += 1);
            seed -= SUMS;
            const simd::Floats factor = simd::broadcast(seed), term = simd::broadcast(1 - seed);
            for (int step = 0; step < STEPS; ++step)
#pragma GCC unroll 32  // sums in an array that is indexed would be in memory
                for (simd::Floats& sum : sums) sum = sum * factor + term;
            // All of them are looked at, so that none can be left out.
            float total = 0;
            for (const simd::Floats& sum : sums)
                for (int lane = 0; lane < simd::LANES; ++lane) total += sum[lane];
            const volatile float used = total;
            seed = used > 0 ? 0.5f : 0.25f;
        };
    };
    return best_rate(threads, 20, 2.0 * SUMS * simd::LANES * STEPS, make);
}

constexpr int NUMBERS = 4096;  // 16 KiB, half of a small L1 cache
constexpr int PASSES = 1000;

/// `exponentials(from, to)` fills `to` with e^from.
template <class Function>
double exponential_rate(int threads, Function&& exponentials) {
    const auto make = [&] {
        return [&, from = Eigen::ArrayXf(Eigen::ArrayXf::Random(NUMBERS) * 5 - 5),
                to = Eigen::ArrayXf(NUMBERS)]() mutable {
            for (int pass = 0; pass < PASSES; ++pass) {
                exponentials(from, to);
                from[pass % NUMBERS] =
                    -to[pass % NUMBERS];  // no pass is the same as the one before
            }
        };
    };
    return best_rate(threads, 20, double{NUMBERS} * PASSES, make);
}

}  // namespace

MachineRates measure_rates(int threads) {
    MachineRates rates{.threads = threads};
    rates.product_flops = product_rate(threads);
    rates.register_flops = register_rate(threads);
    rates.simd_exponentials =
        exponential_rate(threads, [](const Eigen::ArrayXf& from, Eigen::ArrayXf& to) {
            for (int i = 0; i < NUMBERS; i += simd::LANES)
                simd::store(to.data() + i, simd::exp_nonpositive(simd::load(from.data() + i)));
        });
    rates.eigen_exponentials = exponential_rate(
        threads, [](const Eigen::ArrayXf& from, Eigen::ArrayXf& to) { to = from.exp(); });

    const std::size_t copy =
        std::min(std::size_t{64} << 20, memory_to_use() / (2 * static_cast<std::size_t>(threads)));
    rates.copied_bytes = best_rate(threads, 3, 2.0 * static_cast<double>(copy), [copy] {
        return [from = std::vector<char>(copy, 1), to = std::vector<char>(copy), copy]() mutable {
            std::memcpy(to.data(), from.data(), copy);
        };
    });
    return rates;
}

std::string table_of(const std::vector<MachineRates>& machine) {
    TextTable table({"threads", "matrix product (Eigen)", "exp (simd.h)", "exp (Eigen)",
                     "copy, read + written"});
    for (const MachineRates& rates : machine)
        table.add({fmt::format("{}", rates.threads),
                   fmt::format("{:.1f} GFLOP/s", rates.product_flops * 1e-9),
                   fmt::format("{:.2f} G/s", rates.simd_exponentials * 1e-9),
                   fmt::format("{:.2f} G/s", rates.eigen_exponentials * 1e-9),
                   fmt::format("{:.1f} GB/s", rates.copied_bytes * 1e-9)});
    return table.str();
}

}  // namespace fa
