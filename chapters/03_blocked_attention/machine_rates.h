#pragma once
/// @file
/// What this machine can do at best, measured where the attentions are: the ceilings to predict
/// with.

#include <string>
#include <vector>

namespace fa {

/// Rates of all threads together, each thread busy with its own data.
struct MachineRates {
    int threads = 1;
    double product_flops = 0;       ///< FLOP/s of Eigen's fp32 matrix product, the best shape
    double register_flops = 0;      ///< FLOP/s of multiply-adds on registers: no product is faster
    double simd_exponentials = 0;   ///< exponentials per second, simd.h, data in the L1 cache
    double eigen_exponentials = 0;  ///< exponentials per second, Eigen's exp, the same data
    double copied_bytes = 0;        ///< bytes read plus written per second, far beyond the caches
};

/// Measures for that many threads; takes about a second.
MachineRates measure_rates(int threads);

/// A table of them, one row each.
std::string table_of(const std::vector<MachineRates>& machine);

}  // namespace fa
