// A kernel as those of Hopper are, on the CPU executor: a warp that loads, warpgroups that
// multiply, a ring of stages between them; right in every order, and with each of its mistakes
// caught.

#include <doctest/doctest.h>

#include <array>
#include <cstdint>

#include "tests/executor_hopper.h"

namespace fa {
namespace {

/// What a kernel can do wrong.
enum class Mistake {
    none,
    early_hand_back,   ///< a stage is handed back before the product that reads it is waited for
    one_for_all,       ///< one warp hands back for its warpgroup: the others can miss a phase
    late_publication,  ///< of the result, after the barrier
    no_publication,    ///< of the result, before it is stored
    no_named_barrier,  ///< between the warps that write the result and the thread that stores it
    no_store_wait,
    no_wait_for_stage,  ///< products do not wait for the box
    too_few_bytes,      ///< announced
    too_many_bytes,
    one_stage_too_many,  ///< loaded
    stage_handed_back_by_nobody,
    touched_accumulators,
    touched_operand,
    no_fence,
    no_product_wait,
    one_warp_multiplies_less,
    one_warp_changes_other_registers,
    barriers_not_published,
    no_block_barrier,  ///< between the initialisation of barriers and their use
    two_arrivals,      ///< of one warp, for one stage
};

constexpr int STEPS = 7, ROWS = 64;
constexpr std::uint32_t BOX = ROWS * 128;

/// D = Σ over steps of A·B[step], A all ones (from registers), 64 × 64, by `warpgroups` warpgroups
/// that each compute the same; a producer warp loads B through a ring of STAGES boxes. `in` has
/// STEPS · ROWS tokens of 64 channels, `out` has `warpgroups` · 64. Warpgroup 0 is the producer's.
template <int STAGES>
void ring(const TensorMap& in, const TensorMap& out, int warpgroups, Mistake mistake) {
    const std::uint32_t stages = shared_address(0), results = stages + STAGES * BOX;
    const std::uint32_t full = results + static_cast<std::uint32_t>(warpgroups) * BOX;
    const std::uint32_t empty = full + STAGES * 8;
    const int warpgroup = uniform(static_cast<int>(thread() / 128));
    if (thread() == 0) {
        for (std::uint32_t s = 0; s < STAGES; ++s) {
            init_barrier(full + 8 * s, 1);
            init_barrier(empty + 8 * s, (mistake == Mistake::one_for_all ? 1 : 4) * warpgroups);
        }
        if (mistake != Mistake::barriers_not_published) publish_barriers();
    }
    if (mistake != Mistake::no_block_barrier) __syncthreads();
    std::uint32_t s = 0;
    unsigned parity = 0;
    const auto advance = [&] {
        if (++s == STAGES) s = 0, parity ^= 1;
    };
    if (warpgroup == 0) {
        decrease_registers<24>();
        if (thread() < 32 && one_lane()) {
            prefetch_map(in);
            const int steps = STEPS + (mistake == Mistake::one_stage_too_many ? 1 : 0);
            for (int step = 0; step < steps; ++step, advance()) {
                wait_phase(empty + 8 * s, parity ^ 1);
                arrive_expecting(full + 8 * s, mistake == Mistake::too_few_bytes    ? BOX / 2
                                               : mistake == Mistake::too_many_bytes ? 2 * BOX
                                                                                    : BOX);
                load_box(stages + s * BOX, in, full + 8 * s, 0, step * ROWS, 0, 0);
            }
        }
        return;
    }
    if (mistake == Mistake::one_warp_changes_other_registers && thread() / 32 == 5)
        increase_registers<232>();
    else
        increase_registers<240>();
    const unsigned t = thread() % 128;
    const std::uint32_t ones = pack<BFloat16>(1, 1);
    std::uint32_t a[4][4];
    for (auto& step : a)
        for (std::uint32_t& pair : step) pair = ones;
    float d[8][4] = {};
    const auto hand_back = [&] {
        const bool mine = mistake == Mistake::one_for_all ? t == 0 : t % 32 == 0;
        if (mine && mistake != Mistake::stage_handed_back_by_nobody) arrive(empty + 8 * s);
        if (mine && mistake == Mistake::two_arrivals) arrive(empty + 8 * s);
    };
    for (int step = 0; step < STEPS; ++step, advance()) {
        if (mistake != Mistake::no_wait_for_stage) wait_phase(full + 8 * s, parity);
        if (mistake != Mistake::no_fence) fence_products();
        for (unsigned k = 0; k < 4; ++k)
            if (mistake != Mistake::one_warp_multiplies_less || thread() / 32 != 6 || k != 3)
                Product<BFloat16, 64, true>::add(
                    d, a[k], by_columns(stages + s * BOX, BOX) + k * DEEPER_BY_COLUMNS);
        commit_products();
        if (mistake == Mistake::touched_accumulators && t == 77) d[3][1] = 0;
        if (mistake == Mistake::touched_operand && t == 77) a[3][1] = 0;
        if (mistake == Mistake::early_hand_back) hand_back();
        if (mistake != Mistake::no_product_wait) wait_products<0>();
        pin(d);
        if (mistake != Mistake::early_hand_back) hand_back();
    }
    if (mistake == Mistake::no_product_wait) return;
    // Row 16w + l % 16, chunks 2i and 2i + 1.
    const std::uint32_t own = results + static_cast<std::uint32_t>(warpgroup - 1) * BOX;
    const std::uint32_t row = t / 32 * 16 + t % 16;
    for (unsigned i = 0; i < 4; ++i) {
        const std::uint32_t r[4]{pack<BFloat16>(d[2 * i][0], d[2 * i][1]),
                                 pack<BFloat16>(d[2 * i][2], d[2 * i][3]),
                                 pack<BFloat16>(d[2 * i + 1][0], d[2 * i + 1][1]),
                                 pack<BFloat16>(d[2 * i + 1][2], d[2 * i + 1][3])};
        store_matrices(own + row * 128 + ((2 * i + t % 32 / 16) ^ row % 8) * 16, r);
    }
    const bool publishes = mistake != Mistake::no_publication;
    if (publishes && mistake != Mistake::late_publication) publish_for_copies();
    if (mistake != Mistake::no_named_barrier) named_barrier_wait(1 + warpgroup, 128);
    if (mistake == Mistake::late_publication) publish_for_copies();
    if (t == 0) {
        store_box(out, own, 0, (warpgroup - 1) * 64, 0, 0);
        commit_stores();
        if (mistake != Mistake::no_store_wait) wait_stores_read<0>();
    }
}

/// Runs ring() and counts the wrong results.
template <int STAGES>
int wrong_in_ring(int warpgroups, const Options& options, Mistake mistake = Mistake::none,
                  Counters* counters = nullptr) {
    const auto rows = static_cast<std::int64_t>(STEPS) * ROWS;
    alignas(16) static std::array<BFloat16, STEPS * ROWS * 64> in;
    for (std::size_t i = 0; i < in.size(); ++i)
        in[i] = BFloat16(static_cast<float>(i / 64 % 13) + static_cast<float>(i % 64 % 7) - 9);
    alignas(16) std::array<BFloat16, 4 * 64 * 64> out;
    const TensorMap in_map =
        make_executor_map(in.data(), {64, rows, 1, 1}, {64, 64 * rows, 64 * rows}, ROWS);
    const TensorMap out_map =
        make_executor_map(out.data(), {64, 64 * warpgroups, 1, 1},
                          {64, 64 * 64 * warpgroups, 64 * 64 * warpgroups}, 64);
    const Counters c = run_block(
        static_cast<unsigned>(128 * (warpgroups + 1)),
        STAGES * (BOX + 16) + static_cast<std::size_t>(warpgroups) * BOX,
        [&] { ring<STAGES>(in_map, out_map, warpgroups, mistake); }, options);
    if (counters != nullptr) *counters = c;
    int wrong = 0;
    for (int i = 0; i < warpgroups * 64 * 64; ++i) {
        float sum = 0;
        for (std::size_t token = 0; token < STEPS * ROWS; ++token)
            sum += static_cast<float>(in[token * 64 + static_cast<std::size_t>(i) % 64]);
        wrong += static_cast<float>(out[static_cast<std::size_t>(i)]) !=
                 static_cast<float>(BFloat16(sum));
    }
    return wrong;
}

TEST_CASE("executor: a ring of stages works in every order") {
    for (bool reverse : {false, true})
        for (bool at_once : {false, true}) {
            const Options options{.reverse_order = reverse, .copies_arrive_at_once = at_once};
            Counters counters;
            CHECK(wrong_in_ring<1>(1, options) == 0);
            CHECK(wrong_in_ring<2>(2, options, Mistake::none, &counters) == 0);
            CHECK(wrong_in_ring<3>(3, options) == 0);
            CHECK(counters.global_load_bytes == STEPS * BOX);
            CHECK(counters.global_store_bytes == 2 * 64 * 64 * 2);
        }
    for (std::uint64_t shuffle = 1; shuffle <= 50; ++shuffle)
        CHECK(wrong_in_ring<2>(2, {.shuffle = shuffle}) == 0);
}

TEST_CASE("executor: what goes wrong in a ring of stages is caught") {
    const auto fault = [](Mistake mistake, const char* text, const Options& options = {}) {
        CAPTURE(static_cast<int>(mistake));
        CHECK_THROWS_WITH_AS(wrong_in_ring<2>(2, options, mistake), doctest::Contains(text), Fault);
    };
    for (const Options& options : ORDERS) {
        CAPTURE(options.shuffle);
        fault(Mistake::early_hand_back, "a product of warp", options);
        fault(Mistake::one_for_all, "a product of warp", options);
        fault(Mistake::late_publication, "without publish_for_copies()", options);
        fault(Mistake::no_publication, "without publish_for_copies()", options);
        fault(Mistake::no_named_barrier, "no order between", options);
        fault(Mistake::no_store_wait, "wait_stores_read<0>() is missing", options);
        fault(Mistake::no_wait_for_stage, "", options);
        fault(Mistake::too_few_bytes, "", options);
        fault(Mistake::too_many_bytes, "deadlock", options);
        fault(Mistake::one_stage_too_many, "the block ends", options);
        fault(Mistake::stage_handed_back_by_nobody, "deadlock", options);
        fault(Mistake::touched_accumulators, "touched", options);
        fault(Mistake::touched_operand, "touched", options);
        fault(Mistake::no_fence, "without fence_products()", options);
        fault(Mistake::no_product_wait, "not waited for", options);
        fault(Mistake::one_warp_multiplies_less, "do not issue the same products", options);
        fault(Mistake::one_warp_changes_other_registers, "do not issue the same products", options);
        fault(Mistake::barriers_not_published, "has not published", options);
        fault(Mistake::no_block_barrier, "barrier", options);
        fault(Mistake::two_arrivals, "", options);
    }
}

}  // namespace
}  // namespace fa
