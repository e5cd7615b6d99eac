#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "chapters/03_blocked_attention/fast_attention.h"
#include "chapters/04_cuda_tiled/executor_attention.h"
#include "chapters/05_exp2/exp2_attention.h"
#include "chapters/05_exp2/experiments.h"
#include "chapters/05_exp2/fast_exp2_attention.h"
#include "common/attention_data.h"
#include "common/larger.h"
#include "common/reference_attention.h"
#include "common/run_from_host.h"
#include "common/text_table.h"
#ifdef FA_CUDA_ENABLED
#include "chapters/04_cuda_tiled/tiled_attention.h"
#include "common/cuda/device.h"
#endif

namespace fa {
namespace {

/// The two ways on one device.
struct Pair {
    std::string_view where;
    const Implementation* exp;
    const Implementation* exp2;
};

std::vector<Pair> pairs(DeviceChoice device) {
    std::vector<Pair> list{{"CPU, vectors", &CPU_FAST, &CPU_FAST_EXP2},
                           {"kernel, executor", &EXECUTOR_REGISTER_TILED, &EXECUTOR_EXP2}};
#ifdef FA_CUDA_ENABLED
    if (device != DeviceChoice::cpu && why_no_gpu().empty())
        list.push_back({"kernel, GPU", &CUDA_REGISTER_TILED, &CUDA_EXP2});
#else
    static_cast<void>(device);
#endif
    return list;
}

/// The largest errors against fp64.
struct Errors {
    double o = 0;    ///< over the largest |O|
    double lse = 0;  ///< over max(1, |LSE|)
};

template <class T>
Errors errors_of(const Implementation& implementation, const AttentionProblem& problem,
                 AttentionData<T>& data, const ReferenceResult& gold) {
    std::fill(data.o.begin(), data.o.end(), T(std::nanf("")));  // what is not written must show
    std::fill(data.lse.begin(), data.lse.end(), std::nanf(""));
    run_from_host(implementation, problem, data.tensors());
    Errors errors;
    double largest = 0;
    for (const double o : gold.o) largest = std::max(largest, std::abs(o));
    std::size_t i = 0;
    for (const T& o : data.o)
        errors.o = larger_or_nan(
            errors.o, std::abs(static_cast<double>(static_cast<float>(o)) - gold.o[i++]) / largest);
    for (i = 0; i < gold.lse.size(); ++i)
        errors.lse = larger_or_nan(errors.lse, std::abs(double{data.lse[i]} - gold.lse[i]) /
                                                   std::max(1.0, std::abs(gold.lse[i])));
    return errors;
}

}  // namespace

void show_errors(Program& program, std::int64_t length, std::int64_t head_dim) {
    print_heading(fmt::format("Errors measured against fp64: T = {}, d = {}, 2 heads, causal",
                              length, head_dim));
    TextTable table({"where", "type", "scale", "O, exp", "O, exp2", "LSE, exp", "LSE, exp2"});
    table.left(1);
    const auto fmt_error = [](double x) { return fmt::format("{:.1e}", x); };
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
        for (const float scale :
             {1.0f / std::sqrt(static_cast<float>(head_dim)), 4.0f, -0.3f, 0.0f}) {
            // Large, negative and no scale: in fp32, where a difference would show.
            if (dtype != DType::f32 && scale != 1.0f / std::sqrt(static_cast<float>(head_dim)))
                continue;
            const AttentionProblem problem{.heads_q = 2,
                                           .heads_kv = 2,
                                           .len_q = length,
                                           .len_kv = length,
                                           .head_dim = head_dim,
                                           .dtype = dtype,
                                           .scale = scale,
                                           .causal = true};
            with_element_type(dtype, [&](auto element) {
                AttentionData<decltype(element)> data(problem, program.seed);
                const ReferenceResult gold = reference_attention(problem, data.tensors());
                for (const Pair& pair : pairs(program.device)) {
                    const Errors exp = errors_of(*pair.exp, problem, data, gold);
                    const Errors exp2 = errors_of(*pair.exp2, problem, data, gold);
                    table.add({std::string(pair.where), std::string(name_of(dtype)),
                               fmt::format("{:g}", scale), fmt_error(exp.o), fmt_error(exp2.o),
                               fmt_error(exp.lse), fmt_error(exp2.lse)});
                    for (const auto& [implementation, errors] :
                         {std::pair{pair.exp, exp}, std::pair{pair.exp2, exp2}}) {
                        auto row = Results::row(*implementation, problem);
                        row["scale"] = scale;
                        row["max_error"] = errors.o;
                        row["lse_error"] = errors.lse;
                        program.results.rows.push_back(row);
                    }
                    // Twice the other's, and a few roundings of sums.
                    constexpr double FLOOR = 0x1p-20;
                    const std::string what =
                        fmt::format("{}, {}, scale {:g}", pair.where, name_of(dtype), scale);
                    program.checks.at_most(what + ": O with exp2", exp2.o, 2 * exp.o + FLOOR);
                    program.checks.at_most(what + ": LSE with exp2", exp2.lse, 2 * exp.lse + FLOOR);
                }
            });
        }
    fmt::print("{}", table.str());
}

}  // namespace fa
