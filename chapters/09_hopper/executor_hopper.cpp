#include "chapters/09_hopper/executor_hopper.h"

#include "chapters/09_hopper/executor_entries.h"
#include "chapters/09_hopper/hopper_host.h"

namespace fa {

constinit const Implementation EXECUTOR_HOPPER = hopper_executor_entry<HopperKernel>(
    "executor_hopper", "the Hopper kernels on the CPU executor");

}  // namespace fa
