// Chapter 9's kernels with delays at their barriers (common/barrier_delay.h), on the executor: the
// same sources as those that the hunt launches on a GPU.

#define FA_BARRIER_DELAYS

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "chapters/09_hopper/executor_entries.h"
#include "chapters/09_hopper/executor_hopper.h"
#include "chapters/09_hopper/hopper_host.h"
#include "chapters/09_hopper/ladder.h"
#include "chapters/09_hopper/ladder_host.h"
#include "common/attention_data.h"
#include "tests/executor_hopper.h"

namespace fa {
namespace {

/// The delay of a scope.
class Delayed {
  public:
    explicit Delayed(BarrierDelay delay) { barrier_delay = delay; }
    ~Delayed() { barrier_delay = {}; }
    Delayed(const Delayed&) = delete;
    Delayed& operator=(const Delayed&) = delete;
};

/// Calls `use.template operator()<Kernel, Config>(undelayed)` for the steps and the last kernels;
/// `undelayed` is the same kernel from the library, compiled without delays.
template <class Use>
void for_each_delayed(Use&& use) {
    for_each_hopper_step([&]<class Step>(int number, std::string_view) {
        use.template operator()<HopperLadderKernel<Step>, Step>(
            hopper_ladder_on_executor()[static_cast<std::size_t>(number - 1)]);
    });
    const auto size = [&]<class Config>(std::type_identity<Config>, std::string_view name) {
        for (const Implementation& i : hopper_sizes_on_executor())
            if (i.name == name) use.template operator()<OneSize<Config>, Config>(i);
    };
    using enum Rescale;
    size(std::type_identity<LongHopper64<rare>>{}, "executor_long_hopper_64");
    size(std::type_identity<LongHopper64<lazy>>{}, "executor_lazy_long_hopper_64");
    size(std::type_identity<MediumHopper64<rare>>{}, "executor_medium_hopper_64");
    size(std::type_identity<ShortHopper64<rare>>{}, "executor_short_hopper_64");
    size(std::type_identity<WideHopper64>{}, "executor_wide_hopper_64");
    size(std::type_identity<LongHopper128<rare>>{}, "executor_long_hopper_128");
    size(std::type_identity<PairedHopper128<rare>>{}, "executor_paired_hopper_128");
    size(std::type_identity<FewHopper64<rare>>{}, "executor_few_hopper_64");
}

/// O and LSE, over NaN, of what `run` computes.
template <class Run>
std::vector<std::byte> bits_of(AttentionData<BFloat16>& data, Run&& run) {
    constexpr float NOT_A_NUMBER = std::numeric_limits<float>::quiet_NaN();
    std::fill(data.o.begin(), data.o.end(), BFloat16(NOT_A_NUMBER));
    std::fill(data.lse.begin(), data.lse.end(), NOT_A_NUMBER);
    alignas(64) std::byte workspace[64];
    run(std::span(workspace));
    const std::span o(data.o.begin(), data.o.end());
    std::vector<std::byte> bits(o.size_bytes() + data.lse.size() * sizeof(float));
    std::memcpy(bits.data(), o.data(), o.size_bytes());
    std::memcpy(bits.data() + o.size_bytes(), data.lse.data(), data.lse.size() * sizeof(float));
    return bits;
}

TEST_CASE("delays: whichever warp sleeps at its barriers, the same bits") {
#ifdef FA_SANITIZED
    constexpr int EVERY = 3;
#else
    constexpr int EVERY = 1;
#endif
    // Several tiles to a block where blocks fetch them, and several blocks of keys.
    const AttentionProblem p{.heads_q = 2,
                             .heads_kv = 1,
                             .len_q = 520,
                             .len_kv = 520,
                             .dtype = DType::bf16,
                             .causal = true};
    AttentionData<BFloat16> data(p, 5);
    int kernels = 0;
    for_each_delayed([&]<class Kernel, class Config>(const Implementation& undelayed) {
        CAPTURE(undelayed.name);
        ++kernels;
        const auto plain = bits_of(data, [&](std::span<std::byte> workspace) {
            attention(undelayed, p, data.tensors(), workspace, {});
        });
        const auto delayed = [&](const BarrierDelay& delay) {
            const Delayed scope(delay);
            return bits_of(data, [&](std::span<std::byte> workspace) {
                run_hopper_config_on_executor<Kernel, Config, BFloat16>(
                    p, data.tensors(), workspace.first(sizeof(int)), {}, [](const auto&) {});
            });
        };
        CHECK(delayed({}) == plain);
        for (int warp = 0; warp < cluster_of<Config>() * Config::THREADS / 32; warp += EVERY) {
            CAPTURE(warp);
            // For a while, and until nobody else can go on.
            CHECK(delayed({warp, warp % 2 == 0 ? 300 : 1'000'000'000}) == plain);
        }
    });
    CHECK(kernels == 16);
}

TEST_CASE("delays: a missed phase shows when the warp that misses it is late") {
    // A ring of two stages that nobody reads: four warps wait for each stage, and one of them hands
    // it back for all. Byte 0 on: the barriers.
    const auto skip = [](bool every_warp_for_itself) {
        const std::uint32_t full = shared_address(0), empty = full + 16;
        if (thread() == 0) {
            for (std::uint32_t s = 0; s < 2; ++s) {
                init_barrier(full + 8 * s, 1);
                init_barrier(empty + 8 * s, every_warp_for_itself ? 4 : 1);
            }
            publish_barriers();
        }
        __syncthreads();
        for (std::uint32_t i = 0; i < 9; ++i) {
            const std::uint32_t stage = 8 * (i % 2);
            const unsigned parity = i / 2 % 2;
            if (thread() == 128) {
                wait_phase(empty + stage, parity ^ 1);
                arrive(full + stage);
            } else if (thread() < 128) {
                wait_phase(full + stage, parity);
                warp_barrier();
                if (thread() % 32 == 0 && (every_warp_for_itself || thread() == 0))
                    arrive(empty + stage);
            }
        }
    };
    const auto run = [&](bool every_warp_for_itself, const BarrierDelay& delay) {
        const Delayed scope(delay);
        run_block(160, 4096, [&] { skip(every_warp_for_itself); });
    };
    for (int warp = -1; warp < 5; ++warp) {
        CAPTURE(warp);
        CHECK_NOTHROW(run(true, {warp, 100'000}));
        if (warp == 1 || warp == 2 || warp == 3)
            CHECK_FAULT(run(false, {warp, 100'000}), "deadlock");
        else
            CHECK_NOTHROW(run(false, {warp, 100'000}));
    }
}

}  // namespace
}  // namespace fa
