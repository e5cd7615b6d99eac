#include "chapters/05_exp2/exp2_attention.h"
#include "chapters/04_cuda_tiled/executor_entry.h"
#include "chapters/05_exp2/exp2_host.h"

namespace fa {

constinit const Implementation EXECUTOR_EXP2 =
    executor_entry<Exp2Kernel>("executor_exp2", 5, "the exp2 kernel on the CPU executor");

executor::Counters run_exp2_on_executor(const AttentionProblem& problem,
                                        const AttentionTensors& tensors,
                                        const executor::Options& options) {
    return run_on_executor<Exp2Kernel>(problem, tensors, options);
}

}  // namespace fa
