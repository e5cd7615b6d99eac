#include <array>

#include "chapters/09_hopper/executor_entries.h"
#include "chapters/09_hopper/executor_hopper.h"
#include "chapters/09_hopper/hopper_host.h"

namespace fa {

std::span<const Implementation> hopper_sizes_on_executor() {
    using enum Rescale;
    constexpr std::string_view SUMMARY = "a size of chapter 9's last kernels";
    static constexpr std::array SIZES{
        hopper_executor_entry<OneSize<LongHopper64<rare>>>("executor_long_hopper_64", SUMMARY),
        hopper_executor_entry<OneSize<LongHopper64<lazy>>>("executor_lazy_long_hopper_64", SUMMARY),
        hopper_executor_entry<OneSize<MediumHopper64<rare>>>("executor_medium_hopper_64", SUMMARY),
        hopper_executor_entry<OneSize<ShortHopper64<rare>>>("executor_short_hopper_64", SUMMARY),
        hopper_executor_entry<OneSize<FewHopper64<rare>>>("executor_few_hopper_64", SUMMARY),
        hopper_executor_entry<OneSize<WideHopper64>>("executor_wide_hopper_64", SUMMARY),
        hopper_executor_entry<OneSize<LongHopper128<rare>>>("executor_long_hopper_128", SUMMARY),
        hopper_executor_entry<OneSize<PairedHopper128<rare>>>("executor_paired_hopper_128",
                                                              SUMMARY),
    };
    return SIZES;
}

}  // namespace fa
