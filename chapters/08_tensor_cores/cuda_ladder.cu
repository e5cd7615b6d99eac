#include <stdexcept>
#include <string>

#include "chapters/08_tensor_cores/cuda_entries.cuh"
#include "chapters/08_tensor_cores/ladder.h"
#include "chapters/08_tensor_cores/ladder_host.h"

namespace fa {

#define STEP(ENTRY, TYPE, NAME, SUMMARY)   \
    constinit const Implementation ENTRY = \
        tensor_core_entry<LadderKernel<TYPE>>("cuda_" NAME, SUMMARY)
STEP(CUDA_MMA, MmaStep, "mma", "tensor cores, fragments gathered element by element");
STEP(CUDA_LDMATRIX, LdmatrixStep, "ldmatrix", "and fragments by ldmatrix");
STEP(CUDA_SWIZZLE, SwizzleStep, "swizzle", "and swizzled tiles");
STEP(CUDA_REGISTERS, RegistersStep, "registers", "and P and Q in registers");
STEP(CUDA_CP_ASYNC, CpAsyncStep, "cp_async", "and tiles copied ahead");
STEP(CUDA_MASKS, MasksStep, "masks", "and masks only where they are needed");
STEP(CUDA_LAZY, LazyStep, "lazy", "and rescaling only when a maximum grows much");
#undef STEP

KernelResources ladder_resources(std::string_view name, const AttentionProblem& problem) {
    KernelResources r;
    bool found = false;
    for_each_step([&]<class Step>(int, std::string_view step) {
        if (name != "cuda_" + std::string(step)) return;
        r = tensor_core_resources<LadderKernel<Step>>(problem);
        found = true;
    });
    if (!found) throw std::invalid_argument(std::string(name) + " is no step of the ladder");
    return r;
}

}  // namespace fa
