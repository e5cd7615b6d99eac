#include "chapters/09_hopper/experiments.h"
#ifdef FA_HOPPER_ENABLED
#include "chapters/09_hopper/hopper_support.h"
#include "common/cuda/device.h"
#endif

namespace fa {

bool hopper_is_here([[maybe_unused]] const Program& program) {
#ifdef FA_HOPPER_ENABLED
    return program.where() == Device::cuda &&
           hopper_capability_why_unsupported(gpu_properties().compute_capability).empty();
#else
    return false;
#endif
}

}  // namespace fa
