#pragma once
/// @file
/// The steps of the ladder as the host sees them.

#include "chapters/08_tensor_cores/entries.h"
#include "chapters/08_tensor_cores/step1_mma.h"
#include "chapters/08_tensor_cores/step2_ldmatrix.h"
#include "chapters/08_tensor_cores/step3_swizzle.h"
#include "chapters/08_tensor_cores/step4_registers.h"
#include "chapters/08_tensor_cores/step5_cp_async.h"
#include "chapters/08_tensor_cores/step6_masks.h"
#include "chapters/08_tensor_cores/step7_lazy.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// A step as a kernel (entries.h): one set of sizes, made for 64 channels and taking fewer.
template <class Step>
struct LadderKernel {
    /// Calls `use` with the step's sizes. @return their shared memory in bytes
    template <class Use>
    static std::size_t with_config(const AttentionProblem&, bool, int, Use&& use) {
        use.template operator()<Step>();
        return Step::SHARED_BYTES;
    }
    /// The kernel as a function of the arguments.
    template <class Config, class T>
    static constexpr auto function() {
        return Config::template kernel<T>();
    }
    static constexpr std::int64_t MAX_HEAD_DIM = Step::HEAD_DIM;
};

/// Calls `use.template operator()<Step>(number, name)` for all steps, in order.
template <class Use>
void for_each_step(Use&& use) {
    use.template operator()<MmaStep>(1, "mma");
    use.template operator()<LdmatrixStep>(2, "ldmatrix");
    use.template operator()<SwizzleStep>(3, "swizzle");
    use.template operator()<RegistersStep>(4, "registers");
    use.template operator()<CpAsyncStep>(5, "cp_async");
    use.template operator()<MasksStep>(6, "masks");
    use.template operator()<LazyStep>(7, "lazy");
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
