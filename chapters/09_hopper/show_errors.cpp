#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "chapters/04_cuda_tiled/error_table.h"
#include "chapters/09_hopper/executor_hopper.h"
#include "chapters/09_hopper/experiments.h"
#ifdef FA_HOPPER_ENABLED
#include "chapters/09_hopper/cuda_hopper.h"
#endif

namespace fa {

void show_errors(Program& program, const HopperOptions& options) {
    std::vector<const Implementation*> judged{&EXECUTOR_HOPPER};
#ifdef FA_HOPPER_ENABLED
    if (hopper_is_here(program)) judged.push_back(&CUDA_HOPPER);
#endif
    const std::int64_t n = options.counted_length;
    std::vector<AttentionProblem> problems;
    for (const auto& [len_q, len_kv, head_dim, dtype] :
         {std::tuple{n, n, std::int64_t{64}, DType::bf16},
          {n / 2 + 1, n - 3, std::int64_t{40}, DType::bf16},
          {n / 2, n, std::int64_t{128}, DType::bf16},
          {n, n, std::int64_t{56}, DType::f16},
          {n / 2 + 1, n - 3, std::int64_t{24}, DType::f16},
          {n / 2, n, std::int64_t{120}, DType::f16}})
        problems.push_back({.heads_q = 2,
                            .heads_kv = 1,
                            .len_q = len_q,
                            .len_kv = std::max<std::int64_t>(len_kv, 1),
                            .head_dim = head_dim,
                            .dtype = dtype,
                            .causal = options.shape.causal});
    show_error_table(program, judged, problems);
}

}  // namespace fa
