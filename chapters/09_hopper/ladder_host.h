#pragma once
/// @file
/// The steps of the ladder as the host sees them.

#include "chapters/09_hopper/hopper_entries.h"
#include "chapters/09_hopper/step1_wgmma.h"
#include "chapters/09_hopper/step2_producer.h"
#include "chapters/09_hopper/step3_overlap.h"
#include "chapters/09_hopper/step4_ping_pong.h"
#include "chapters/09_hopper/step5_warpgroups.h"
#include "chapters/09_hopper/step6_diagonal.h"
#include "chapters/09_hopper/step7_persistent.h"
#include "chapters/09_hopper/step8_lazy.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// A step as a kernel (hopper_entries.h): one set of sizes, made for 64 channels and taking fewer.
template <class Step>
struct HopperLadderKernel {
    /// Calls `use` with the step's sizes.
    template <class Use>
    static void with_config(const AttentionProblem&, int, Use&& use) {
        use.template operator()<Step>();
    }
    /// The kernel function.
    template <class Config, class T>
    static constexpr auto function() {
        return Config::template kernel<T>();
    }
};

/// Calls `use.template operator()<Step>(number, name)` for all steps, in order.
template <class Use>
void for_each_hopper_step(Use&& use) {
    use.template operator()<WgmmaStep>(1, "wgmma");
    use.template operator()<ProducerStep>(2, "producer");
    use.template operator()<OverlapStep>(3, "overlap");
    use.template operator()<PingPongStep>(4, "ping_pong");
    use.template operator()<WarpgroupsStep>(5, "warpgroups");
    use.template operator()<DiagonalStep>(6, "diagonal");
    use.template operator()<PersistentStep>(7, "persistent");
    use.template operator()<LazyHopperStep>(8, "hopper_lazy");
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
