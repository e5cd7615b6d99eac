#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "chapters/01_memory_accounting/naive_attention.h"
#include "chapters/08_tensor_cores/executor_tensor_cores.h"
#include "chapters/08_tensor_cores/experiments.h"
#include "common/aligned_buffer.h"
#include "common/attention_data.h"
#include "common/reference_attention.h"
#include "common/text_table.h"
#ifdef FA_CUDA_ENABLED
#include "chapters/08_tensor_cores/cuda_tensor_cores.h"
#include "common/cuda/run_from_host.h"
#endif

namespace fa {
namespace {

std::vector<const Implementation*> judged(const Program& program) {
    std::vector<const Implementation*> list{&EXECUTOR_TENSOR_CORES};
#ifdef FA_CUDA_ENABLED
    if (program.where() == Device::cuda) list.push_back(&CUDA_TENSOR_CORES);
#endif
    static_cast<void>(program);
    return list;
}

void run(const Implementation& implementation, const AttentionProblem& p,
         const AttentionTensors& tensors) {
#ifdef FA_CUDA_ENABLED
    if (implementation.device == Device::cuda)
        return run_on_gpu_from_host(implementation, p, tensors);
#endif
    const AlignedBuffer workspace(implementation.workspace_bytes(p, {}));
    attention(implementation, p, tensors, workspace.bytes());
}

/// Largest differences from fp64, in O and in LSE. A NaN anywhere is the answer.
struct Errors {
    double o = 0, lse = 0;
};

void raise(double& largest, double error) {
    if (!std::isnan(largest) && !(error <= largest)) largest = error;
}

template <class T>
Errors errors(const Implementation& implementation, const AttentionProblem& p,
              AttentionData<T>& data, const ReferenceResult& gold) {
    std::fill(data.o.begin(), data.o.end(), T(std::nanf("")));
    std::fill(data.lse.begin(), data.lse.end(), std::nanf(""));
    run(implementation, p, data.tensors());
    Errors result;
    for (std::size_t i = 0; i < gold.o.size(); ++i)
        raise(result.o,
              std::fabs(static_cast<double>(static_cast<float>(data.o.data()[i])) - gold.o[i]));
    for (std::size_t i = 0; i < gold.lse.size(); ++i)
        if (static_cast<double>(data.lse[i]) != gold.lse[i])  // −∞ where no key is seen
            raise(result.lse, std::fabs(static_cast<double>(data.lse[i]) - gold.lse[i]));
    return result;
}

}  // namespace

void show_errors(Program& program, const TensorCoreOptions& options) {
    print_heading("Errors against fp64");
    // Twice what naive attention of the same type errs, and a floor of two roundings to that type.
    TextTable table({"problem", "implementation", "largest error of O", "bound", "of LSE"});
    table.left(1);
    const std::int64_t n = options.counted_length;
    for (const auto& [len_q, len_kv, head_dim] : {std::tuple{n, n, std::int64_t{64}},
                                                  {n / 2 + 1, n - 3, std::int64_t{40}},
                                                  {n / 2, n, std::int64_t{128}},
                                                  {n / 4, n, std::int64_t{256}}}) {
        const AttentionProblem p{.heads_q = 4,
                                 .heads_kv = 2,
                                 .len_q = len_q,
                                 .len_kv = std::max<std::int64_t>(len_kv, 0),
                                 .head_dim = head_dim,
                                 .dtype = options.shape.dtype,
                                 .causal = options.shape.causal};
        with_element_type(p.dtype, [&](auto element) {
            AttentionData<decltype(element)> data(p, program.seed);
            const ReferenceResult gold = reference_attention(p, data.tensors());
            double largest = 0;
            for (double o : gold.o) largest = std::max(largest, std::fabs(o));
            const double roundoff = p.dtype == DType::f32   ? 0x1p-24
                                    : p.dtype == DType::f16 ? 0x1p-11
                                                            : 0x1p-8;
            const double bound =
                2 * errors(CPU_NAIVE, p, data, gold).o + 2 * roundoff * std::max(largest, 1.0);
            for (const Implementation* implementation : judged(program)) {
                const Errors e = errors(*implementation, p, data, gold);
                table.add({describe(p), std::string(implementation->name),
                           fmt::format("{:.2e}", e.o), fmt::format("{:.2e}", bound),
                           fmt::format("{:.2e}", e.lse)});
                program.checks.at_most(
                    fmt::format("{}, d{}: error of O", implementation->name, p.head_dim), e.o,
                    bound);
                program.checks.at_most(
                    fmt::format("{}, d{}: error of LSE", implementation->name, p.head_dim), e.lse,
                    1e-5);
                auto row = Results::row(*implementation, p);
                row["status"] = "ok";
                row["max_error"] = e.o;
                row["max_error_lse"] = e.lse;
                program.results.rows.push_back(row);
            }
        });
    }
    fmt::print("{}", table.str());
}

}  // namespace fa
