#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "chapters/04_cuda_tiled/error_table.h"
#include "chapters/04_cuda_tiled/executor_attention.h"
#include "chapters/04_cuda_tiled/experiments.h"
#ifdef FA_CUDA_ENABLED
#include "chapters/04_cuda_tiled/naive_attention_cuda.h"
#include "chapters/04_cuda_tiled/tiled_attention.h"
#endif

namespace fa {

void show_errors(Program& program, const KernelOptions& options) {
    std::vector<const Implementation*> judged{&EXECUTOR_TILED, &EXECUTOR_REGISTER_TILED};
#ifdef FA_CUDA_ENABLED
    if (program.where() == Device::cuda)
        judged.insert(judged.end(), {&CUDA_NAIVE, &CUDA_TILED, &CUDA_REGISTER_TILED});
#endif
    const std::int64_t n = options.counted_length;
    std::vector<AttentionProblem> problems;
    for (const auto& [len_q, len_kv, head_dim] :
         {std::tuple{n, n, options.shape.head_dim}, {n / 2 + 1, n - 3, std::int64_t{40}}})
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
