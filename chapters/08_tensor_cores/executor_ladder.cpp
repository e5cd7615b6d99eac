#include "chapters/08_tensor_cores/ladder.h"

#include <array>

#include "chapters/08_tensor_cores/executor_entries.h"
#include "chapters/08_tensor_cores/ladder_host.h"

namespace fa {

std::span<const Implementation> ladder_on_executor() {
    constexpr std::string_view SUMMARY = "a step of chapter 8's ladder";
    static constexpr std::array STEPS{
        tensor_core_executor_entry<LadderKernel<MmaStep>>("executor_mma", SUMMARY),
        tensor_core_executor_entry<LadderKernel<LdmatrixStep>>("executor_ldmatrix", SUMMARY),
        tensor_core_executor_entry<LadderKernel<SwizzleStep>>("executor_swizzle", SUMMARY),
        tensor_core_executor_entry<LadderKernel<RegistersStep>>("executor_registers", SUMMARY),
        tensor_core_executor_entry<LadderKernel<CpAsyncStep>>("executor_cp_async", SUMMARY),
        tensor_core_executor_entry<LadderKernel<MasksStep>>("executor_masks", SUMMARY),
        tensor_core_executor_entry<LadderKernel<LazyStep>>("executor_lazy", SUMMARY),
    };
    return STEPS;
}

}  // namespace fa
