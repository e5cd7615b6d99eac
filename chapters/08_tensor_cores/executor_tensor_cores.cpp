#include "chapters/08_tensor_cores/executor_tensor_cores.h"

#include "chapters/08_tensor_cores/executor_entries.h"
#include "chapters/08_tensor_cores/tensor_core_host.h"

namespace fa {

constinit const Implementation EXECUTOR_TENSOR_CORES = tensor_core_executor_entry<TensorCoreKernel>(
    "executor_tensor_cores", "the tensor-core kernel on the CPU executor");

}  // namespace fa
