#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "chapters/04_cuda_tiled/error_table.h"
#include "chapters/08_tensor_cores/executor_tensor_cores.h"
#include "chapters/08_tensor_cores/experiments.h"
#ifdef FA_CUDA_ENABLED
#include "chapters/08_tensor_cores/cuda_tensor_cores.h"
#endif

namespace fa {

void show_errors(Program& program, const TensorCoreOptions& options) {
    std::vector<const Implementation*> judged{&EXECUTOR_TENSOR_CORES};
#ifdef FA_CUDA_ENABLED
    if (program.where() == Device::cuda) judged.insert(judged.end(), {&CUDA_TENSOR_CORES});
#endif
    const std::int64_t n = options.counted_length;
    std::vector<AttentionProblem> problems;
    for (const auto& [len_q, len_kv, head_dim] : {std::tuple{n, n, std::int64_t{64}},
                                                  {n / 2 + 1, n - 3, std::int64_t{40}},
                                                  {n / 2, n, std::int64_t{128}},
                                                  {n / 4, n, std::int64_t{256}}})
        problems.push_back({.heads_q = 4,
                            .heads_kv = 2,
                            .len_q = len_q,
                            .len_kv = std::max<std::int64_t>(len_kv, 0),
                            .head_dim = head_dim,
                            .dtype = options.shape.dtype,
                            .causal = options.shape.causal});
    show_error_table(program, judged, problems);
}

}  // namespace fa
