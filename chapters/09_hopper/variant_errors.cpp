#include "chapters/09_hopper/variant_errors.h"

#include <algorithm>
#include <cmath>

#include "chapters/01_memory_accounting/naive_attention.h"
#include "chapters/09_hopper/ablation_kinds.h"
#include "chapters/09_hopper/counted_steps.h"
#include "common/larger.h"
#include "common/reference_attention.h"
#include "common/run_from_host.h"

namespace fa {
namespace {

struct Largest {
    double o = 0, lse = 0;
};

Largest errors(const AttentionData<BFloat16>& data, const ReferenceResult& gold) {
    Largest largest;
    for (std::size_t i = 0; i < gold.o.size(); ++i)
        largest.o = larger_or_nan(
            largest.o,
            std::fabs(static_cast<double>(static_cast<float>(data.o.data()[i])) - gold.o[i]));
    for (std::size_t i = 0; i < gold.lse.size(); ++i)
        if (static_cast<double>(data.lse[i]) != gold.lse[i])
            largest.lse = larger_or_nan(largest.lse,
                                        std::fabs(static_cast<double>(data.lse[i]) - gold.lse[i]));
    return largest;
}

}  // namespace

void for_each_variant_error(const AttentionProblem& p, std::uint64_t seed,
                            const std::function<void(const VariantErrors&)>& use) {
    AttentionData<BFloat16> data(p, seed);
    const ReferenceResult gold = reference_attention(p, data.tensors());
    double largest = 1;
    for (double o : gold.o) largest = std::max(largest, std::fabs(o));
    run_from_host(CPU_NAIVE, p, data.tensors());
    const double bound = 2 * errors(data, gold).o + 2 * roundoff(p.dtype) * largest;
    const auto run = [&]<class Config>(std::string_view name) {
        std::fill(data.o.begin(), data.o.end(), BFloat16(std::nanf("")));
        std::fill(data.lse.begin(), data.lse.end(), std::nanf(""));
        run_counted<HopperKernel, Config>(p, data, {});
        const Largest e = errors(data, gold);
        use({name, e.o, e.lse, bound, Config::SWITCHES.polynomial_eighths > 0 ? 1e-4 : 1e-5});
    };
    if (p.head_dim > 64)
        for_each_hopper_variant128(run);
    else
        for_each_hopper_variant64(run);
}

}  // namespace fa
