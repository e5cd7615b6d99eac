#include "chapters/08_tensor_cores/cuda_entries.cuh"
#include "chapters/08_tensor_cores/cuda_tensor_cores.h"
#include "chapters/08_tensor_cores/tensor_core_host.h"

namespace fa {

constinit const Implementation CUDA_TENSOR_CORES = tensor_core_entry<TensorCoreKernel>(
    "cuda_tensor_cores", "mma.sync, ldmatrix, cp.async: FlashAttention-2 and faster");

KernelResources tensor_cores_resources(const AttentionProblem& problem) {
    return tensor_core_resources<TensorCoreKernel>(problem);
}

}  // namespace fa
