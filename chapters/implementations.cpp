#include "chapters/implementations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <stdexcept>
#include <vector>

#include "chapters/01_memory_accounting/naive_attention.h"
#include "chapters/03_blocked_attention/blocked_attention.h"
#include "chapters/03_blocked_attention/fast_attention.h"
#include "chapters/04_cuda_tiled/executor_attention.h"
#include "chapters/05_exp2/exp2_attention.h"
#include "chapters/05_exp2/fast_exp2_attention.h"
#include "chapters/08_tensor_cores/executor_tensor_cores.h"
#include "chapters/08_tensor_cores/ladder.h"
#include "chapters/09_hopper/executor_hopper.h"
#ifdef FA_CUDA_ENABLED
#include "chapters/04_cuda_tiled/naive_attention_cuda.h"
#include "chapters/04_cuda_tiled/tiled_attention.h"
#include "chapters/08_tensor_cores/cuda_tensor_cores.h"
#endif
#ifdef FA_HOPPER_ENABLED
#include "chapters/09_hopper/cuda_hopper.h"
#include "chapters/09_hopper/ladder.h"
#endif

namespace fa {

std::span<const Implementation> all_implementations() {
    // One a line, so that an entry more is a line more.
    // clang-format off
    static const std::array list{
        CPU_NAIVE,
        CPU_NAIVE_BF16_SCORES,
        CPU_BLOCKED_KV_OUTER,
        CPU_BLOCKED,
        CPU_FAST,
        CPU_FAST_EXP2,
        EXECUTOR_TILED,
        EXECUTOR_REGISTER_TILED,
        EXECUTOR_EXP2,
        EXECUTOR_TENSOR_CORES,
        EXECUTOR_HOPPER,
#ifdef FA_CUDA_ENABLED
        CUDA_NAIVE,
        CUDA_NAIVE_16BIT_SCORES,
        CUDA_TILED,
        CUDA_REGISTER_TILED,
        CUDA_EXP2,
        CUDA_MMA,
        CUDA_LDMATRIX,
        CUDA_SWIZZLE,
        CUDA_REGISTERS,
        CUDA_CP_ASYNC,
        CUDA_MASKS,
        CUDA_LAZY,
        CUDA_TENSOR_CORES,
#endif
#ifdef FA_HOPPER_ENABLED
        CUDA_WGMMA,
        CUDA_PRODUCER,
        CUDA_OVERLAP,
        CUDA_PING_PONG,
        CUDA_WARPGROUPS,
        CUDA_DIAGONAL,
        CUDA_PERSISTENT,
        CUDA_HOPPER_LAZY,
        CUDA_HOPPER,
#endif
    };
    // clang-format on
    return list;
}

const Implementation& implementation_named(std::string_view name) {
    std::vector<std::string_view> names;
    for (const Implementation& implementation : all_implementations()) {
        if (implementation.name == name) return implementation;
        names.push_back(implementation.name);
    }
    throw std::invalid_argument(fmt::format("no implementation is called \"{}\"; there are: {}",
                                            name, fmt::join(names, ", ")));
}

}  // namespace fa
