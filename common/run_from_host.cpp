#include "common/run_from_host.h"

#include "common/aligned_buffer.h"
#ifdef FA_CUDA_ENABLED
#include "common/cuda/gpu_from_host.h"
#endif

namespace fa {

void run_from_host(const Implementation& implementation, const AttentionProblem& problem,
                   const AttentionTensors& tensors, int threads) {
#ifdef FA_CUDA_ENABLED
    if (implementation.device == Device::cuda)
        return run_on_gpu_from_host(implementation, problem, tensors);
#endif
    const Launch launch{.threads = threads};
    if (const std::string reason = implementation.why_unsupported(problem); !reason.empty())
        throw Unsupported(reason);
    const AlignedBuffer workspace(implementation.workspace_bytes(problem, launch));
    attention(implementation, problem, tensors, workspace.bytes(), launch);
}

}  // namespace fa
