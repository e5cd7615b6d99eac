#include "chapters/06_benchmark/measured_ceilings.h"

#include <omp.h>

#include <algorithm>
#include <stdexcept>

#include "chapters/03_blocked_attention/machine_rates.h"
#include "chapters/06_benchmark/shapes.h"

namespace fa {

const Ceilings& ceilings_for(const CeilingsByType& ceilings, DType dtype) {
    const auto found = std::ranges::find(ceilings, dtype, &CeilingsByType::value_type::first);
    if (found == ceilings.end())
        throw std::invalid_argument("no ceilings were measured for " + std::string(name_of(dtype)));
    return found->second;
}

Cost least_cost(const AttentionProblem& problem) {
    return {.bytes = qkvo_bytes(problem),
            .flops = problem.flops(),
            .exponentials = visible_scores(problem)};
}

double bound_seconds(const Ceilings& ceilings, const AttentionProblem& problem) {
    return seconds_at(ceilings, least_cost(problem));
}

Ceilings measure_ceilings(Device device, [[maybe_unused]] DType dtype, int threads) {
#ifdef FA_CUDA_ENABLED
    if (device == Device::cuda) return measure_cuda_ceilings(dtype);
#endif
    const MachineRates rates = measure_rates(threads > 0 ? threads : omp_get_max_threads());
    return {.name = std::string(name_of(device)),
            .bytes_per_s = rates.copied_bytes,
            .flops_per_s = std::max(rates.register_flops, rates.product_flops),
            .exponentials_per_s = rates.simd_exponentials};
}

}  // namespace fa
