#pragma once
/// @file
/// The variants of the last kernel, as types.

#include "chapters/08_tensor_cores/tensor_core_host.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// The sizes for long problems with other switches.
template <Switches SWITCHES>
using Without = TensorCoreConfig<64, 2, 64, true, 2, true, SWITCHES>;

/// Calls `use.template operator()<Config>(name)` for each variant.
template <class Use>
void for_each_ablated(Use&& use) {
    // clang-format off
    use.template operator()<LongRows64>("the kernel as it is");
    use.template operator()<Without<Switches{.skip_tiles = false, .own_diagonal = false}>>("no tile skipped");
    use.template operator()<Without<Switches{.own_diagonal = false}>>("no warp stops at its own diagonal");
    use.template operator()<Without<Switches{.masks_apart = false}>>("a mask on every tile");
    use.template operator()<Without<Switches{.sections = false}>>("blocks head by head");
    use.template operator()<Without<Switches{.swizzled = false}>>("no swizzle");
    use.template operator()<Without<Switches{.lazy = false}>>("rescaled at every tile");
    use.template operator()<Without<Switches{.powers_of_two = false}>>("exp instead of exp2");
    use.template operator()<Without<Switches{.stages = 1}>>("nothing prefetched");
    use.template operator()<Without<Switches{.stages = 3}>>("two tiles ahead");
    use.template operator()<ShortRows64>("16 rows to a warp");
    // clang-format on
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
