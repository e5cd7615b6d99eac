#include "chapters/08_tensor_cores/executor_entries.h"
#include "chapters/08_tensor_cores/ladder.h"
#include "chapters/08_tensor_cores/ladder_host.h"

namespace fa {

#define STEP(ENTRY, TYPE, NAME)                                                            \
    constinit const Implementation ENTRY = tensor_core_executor_entry<LadderKernel<TYPE>>( \
        "executor_" NAME, "a step of chapter 8's ladder")
STEP(EXECUTOR_MMA, MmaStep, "mma");
STEP(EXECUTOR_LDMATRIX, LdmatrixStep, "ldmatrix");
STEP(EXECUTOR_SWIZZLE, SwizzleStep, "swizzle");
STEP(EXECUTOR_REGISTERS, RegistersStep, "registers");
STEP(EXECUTOR_CP_ASYNC, CpAsyncStep, "cp_async");
STEP(EXECUTOR_MASKS, MasksStep, "masks");
STEP(EXECUTOR_LAZY, LazyStep, "lazy");
#undef STEP

}  // namespace fa
