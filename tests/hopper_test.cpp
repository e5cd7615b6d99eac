// Chapter 9's kernels on the executor, beyond the suite: every step, size and some switches in many
// orders of warps, lanes and copies; what the host decides; and what TMA is told.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "chapters/09_hopper/executor_entries.h"
#include "chapters/09_hopper/executor_hopper.h"
#include "chapters/09_hopper/hopper_host.h"
#include "chapters/09_hopper/ladder_host.h"
#include "chapters/09_hopper/launch_registers.h"
#include "common/attention_data.h"
#include "common/larger.h"
#include "common/reference_attention.h"
#include "tests/refusal.h"

namespace fa {
namespace {

using testing::refusal;

constexpr float NOT_A_NUMBER = std::numeric_limits<float>::quiet_NaN();

/// Warpgroups that take turns, and skip blocks: each must take as many turns as the others.
using TurnsAndDiagonals = HopperConfig<64, 3, 128, 3, 2, HopperSwitches{.ping_pong = true}>;
/// The same when sums are finished before the next scores, or begun after them.
using NoOverlap = HopperConfig<64, 2, 64, 3, 2, HopperSwitches{.overlap = Overlap::none}>;
using LateSums = HopperConfig<64, 2, 64, 3, 2, HopperSwitches{.overlap = Overlap::softmax}>;
/// One tile to a block, heads one after the other, O from registers.
using OldWays = HopperConfig<64, 2, 64, 3, 2,
                             HopperSwitches{.rescale = Rescale::always,
                                            .own_diagonal = false,
                                            .persistent = false,
                                            .sections = false,
                                            .store_by_tma = false,
                                            .move_registers = false}>;

/// Pairs of blocks of other sizes, and with switches the other way.
using OtherPairs =
    HopperConfig<64, 2, 64, 2, 1,
                 HopperSwitches{
                     .ping_pong = true, .in_advance = true, .store_by_tma = false, .cluster = 2}>;

/// Calls `use.template operator()<Kernel, Config>(name)` for every kernel.
template <class Use>
void for_each_kernel(Use&& use) {
    for_each_hopper_step([&]<class Step>(int, std::string_view name) {
        use.template operator()<HopperLadderKernel<Step>, Step>(name);
    });
    const auto size = [&]<class Config>(std::type_identity<Config>, std::string_view name) {
        use.template operator()<OneSize<Config>, Config>(name);
    };
    using enum Rescale;
    size(std::type_identity<LongHopper64<rare>>{}, "long, 64 channels");
    size(std::type_identity<LongHopper64<lazy>>{}, "long and lazy, 64 channels");
    size(std::type_identity<ShortHopper64<rare>>{}, "short, 64 channels");
    size(std::type_identity<MediumHopper64<rare>>{}, "medium, 64 channels");
    size(std::type_identity<MediumHopper64<lazy>>{}, "medium and lazy, 64 channels");
    size(std::type_identity<WideHopper64>{}, "wide, 64 channels");
    size(std::type_identity<FewHopper64<rare>>{}, "few, 64 channels");
    size(std::type_identity<FewHopper64<lazy>>{}, "few and lazy, 64 channels");
    size(std::type_identity<LongHopper128<rare>>{}, "long, 128 channels");
    size(std::type_identity<ShortHopper128<rare>>{}, "short, 128 channels");
    size(std::type_identity<ShortHopper128<lazy>>{}, "short and lazy, 128 channels");
    size(std::type_identity<PairedHopper64<rare>>{}, "pairs, 64 channels");
    size(std::type_identity<PairedHopper128<rare>>{}, "pairs, 128 channels");
    size(std::type_identity<PairedHopper128<lazy>>{}, "pairs and lazy, 128 channels");
    size(std::type_identity<OtherPairs>{}, "other pairs");
    size(std::type_identity<TurnsAndDiagonals>{}, "turns and diagonals");
    size(std::type_identity<NoOverlap>{}, "no overlap");
    size(std::type_identity<LateSums>{}, "late sums");
    size(std::type_identity<OldWays>{}, "old ways");
}

/// O and LSE of one run, over NaN.
struct Output {
    std::vector<BFloat16> o;
    std::vector<float> lse;

    bool operator==(const Output& other) const {
        return std::memcmp(o.data(), other.o.data(), o.size() * sizeof(BFloat16)) == 0 &&
               std::memcmp(lse.data(), other.lse.data(), lse.size() * sizeof(float)) == 0;
    }
};

template <class Kernel, class Config>
Output run(const AttentionProblem& p, AttentionData<BFloat16>& data,
           const executor::Options& options) {
    std::fill(data.o.begin(), data.o.end(), BFloat16(NOT_A_NUMBER));
    std::fill(data.lse.begin(), data.lse.end(), NOT_A_NUMBER);
    alignas(64) std::byte workspace[sizeof(int)];
    run_hopper_config_on_executor<Kernel, Config, BFloat16>(p, data.tensors(), workspace, options,
                                                            [](const auto&) {});
    return {{data.o.begin(), data.o.end()}, data.lse};
}

/// Against fp64, to what bf16 weights and outputs allow for standard-normal V.
void check_against(const ReferenceResult& gold, const Output& output) {
    double worst = 0, worst_lse = 0;
    for (std::size_t i = 0; i < gold.o.size(); ++i) {
        const double error =
            std::fabs(static_cast<double>(static_cast<float>(output.o[i])) - gold.o[i]);
        worst = larger_or_nan(worst, error);
    }
    for (std::size_t i = 0; i < gold.lse.size(); ++i) {
        const auto value = static_cast<double>(output.lse[i]);
        if (value == gold.lse[i]) continue;  // −∞
        const double error = std::fabs(value - gold.lse[i]);
        worst_lse = larger_or_nan(worst_lse, error);
    }
    CHECK(worst <= 0.03);
    CHECK(worst_lse <= 2e-5);
}

TEST_CASE("hopper: the same bits in every order, and the right ones") {
#ifdef FA_SANITIZED
    constexpr std::uint64_t ORDERS = 2;
#else
    constexpr std::uint64_t ORDERS = 8;
#endif
    for (const AttentionProblem& p :
         {AttentionProblem{.heads_q = 4,
         .heads_kv = 2,
         .len_q = 513,
         .len_kv = 513,
         .dtype = DType::bf16,
         .causal = true},
          AttentionProblem{.heads_q = 3,
          .heads_kv = 3,
          .len_q = 333,
          .len_kv = 200,
          .head_dim = 40,
          .dtype = DType::bf16,
          .causal = true},
          AttentionProblem{.len_q = 70, .len_kv = 261, .dtype = DType::bf16, .scale = -0.125f}}) {
        AttentionData<BFloat16> data(p, 7);
        const ReferenceResult gold = reference_attention(p, data.tensors());
        for_each_kernel([&]<class Kernel, class Config>(std::string_view name) {
            CAPTURE(std::string(name));
            CAPTURE(describe(p));
            const Output plain = run<Kernel, Config>(p, data, {});
            check_against(gold, plain);
            CHECK(run<Kernel, Config>(p, data, {.reverse_order = true}) == plain);
            CHECK(run<Kernel, Config>(p, data, {.copies_arrive_at_once = true}) == plain);
            for (std::uint64_t order = 1; order <= ORDERS; ++order) {
                CAPTURE(order);
                CHECK(run<Kernel, Config>(p, data, {.shuffle = order}) == plain);
            }
        });
    }
}

TEST_CASE("hopper: lengths around the sizes of tiles") {
    for (const std::int64_t length : {1, 63, 64, 65, 127, 128, 129, 192, 193, 255, 256, 257}) {
        const AttentionProblem p{
            .len_q = length, .len_kv = length, .dtype = DType::bf16, .causal = length % 2 == 0};
        AttentionData<BFloat16> data(p, static_cast<std::uint64_t>(length));
        const ReferenceResult gold = reference_attention(p, data.tensors());
        for_each_kernel([&]<class Kernel, class Config>(std::string_view name) {
            CAPTURE(std::string(name));
            CAPTURE(describe(p));
            check_against(gold, run<Kernel, Config>(p, data, {.shuffle = 1}));
        });
    }
}

TEST_CASE("hopper: equal scores of 2^32, times c off by 2^5 when rounded: all weigh the same") {
    const AttentionProblem p{.len_q = 3, .len_kv = 70, .dtype = DType::f16};
    AttentionData<Float16> data(p, 11);
    std::fill(data.q.begin(), data.q.end(), Float16(8192.0f));
    std::fill(data.k.begin(), data.k.end(), Float16(7984.0f));
    const ReferenceResult gold = reference_attention(p, data.tensors());
    for_each_kernel([&]<class Kernel, class Config>(std::string_view name) {
        CAPTURE(std::string(name));
        std::fill(data.o.begin(), data.o.end(), Float16(NOT_A_NUMBER));
        alignas(64) std::byte workspace[sizeof(int)];
        run_hopper_config_on_executor<Kernel, Config, Float16>(p, data.tensors(), workspace, {},
                                                               [](const auto&) {});
        double worst = 0;
        for (std::size_t i = 0; i < gold.o.size(); ++i) {
            const auto value = static_cast<double>(static_cast<float>(data.o.data()[i]));
            const double error = std::fabs(value - gold.o[i]);
            worst = larger_or_nan(worst, error);
        }
        CHECK(worst <= 0.001);
        CHECK(static_cast<double>(data.lse[0]) == doctest::Approx(gold.lse[0]).epsilon(1e-6));
    });
}

TEST_CASE("hopper: a rare maximum that moves where its last place is 4") {
    // 400 keys, read from the last: low ones, and two with the same large score, far apart. However
    // the reference moves, the two must have the same weight, and nobody else any.
    const AttentionProblem p{
        .len_q = 1, .len_kv = 400, .dtype = DType::bf16, .scale = 1.0f / LOG2_E};
    for (const float high : {0x1p20f, 0x1p22f, 0x1p25f, 0x1p25f + 0x1p18f}) {
        AttentionData<BFloat16> data(p, 2);
        std::fill(data.q.begin(), data.q.end(), BFloat16(0.0f));
        std::fill(data.k.begin(), data.k.end(), BFloat16(0.0f));
        for (std::int64_t key = 0; key < p.len_kv; ++key) {
            const bool top = key == 20 || key == 100;
            // Two channels: what bf16 holds of the score, and the rest.
            data.k(0, 0, key, 0) = BFloat16(high);
            data.k(0, 0, key, 1) = BFloat16(top ? 24.0f : 0.0f);
            for (std::int64_t c = 0; c < 64; ++c)
                data.v(0, 0, key, c) = BFloat16(key == 20 ? 1.0f : key == 100 ? 3.0f : 100.0f);
        }
        data.q(0, 0, 0, 0) = data.q(0, 0, 0, 1) = BFloat16(1.0f);
        const ReferenceResult gold = reference_attention(p, data.tensors());
        const Output output =
            run<OneSize<LongHopper64<Rescale::rare>>, LongHopper64<Rescale::rare>>(p, data, {});
        CHECK(static_cast<double>(static_cast<float>(output.o[0])) ==
              doctest::Approx(gold.o[0]).epsilon(0.02));
    }
}

/// Whether a problem gets these sizes, on so many multiprocessors.
template <class Wanted>
bool gets(std::int64_t heads, std::int64_t len_q, std::int64_t len_kv, std::int64_t head_dim,
          bool causal, int multiprocessors = 132) {
    const AttentionProblem p{.heads_q = heads,
                             .heads_kv = heads,
                             .len_q = len_q,
                             .len_kv = len_kv,
                             .head_dim = head_dim,
                             .dtype = DType::bf16,
                             .causal = causal};
    bool same = false;
    HopperKernel::with_config(p, multiprocessors,
                              [&]<class Config>() { same = std::is_same_v<Config, Wanted>; });
    return same;
}

TEST_CASE("hopper: sizes for a problem of 128 channels") {
    using enum Rescale;
    CHECK(gets<ShortHopper128<rare>>(64, 512, 512, 128, true));
    CHECK(gets<LongHopper128<rare>>(64, 1024, 1024, 128, true));
    CHECK(gets<LongHopper128<rare>>(64, 2048, 2048, 128, true));
    CHECK(gets<PairedHopper128<rare>>(64, 16384, 16384, 128, true));
    CHECK(gets<PairedHopper128<rare>>(64, 4096, 4096, 128, false));
    // 128 tiles of 128 queries run at once. So do 96 of 192, and take a third longer.
    CHECK(gets<ShortHopper128<rare>>(16, 1024, 1024, 128, false));
    // The same keys for few queries, whose tiles all run at once.
    CHECK(gets<ShortHopper128<rare>>(64, 1, 16384, 128, true));
    CHECK(gets<ShortHopper128<rare>>(64, 1, 16384, 128, false));
    CHECK(gets<ShortHopper128<rare>>(256, 1, 16384, 128, true));
    CHECK(gets<ShortHopper128<rare>>(256, 1, 16384, 128, false));
    CHECK(gets<ShortHopper128<rare>>(1024, 1, 16384, 128, true));
    CHECK(gets<ShortHopper128<rare>>(1024, 1, 16384, 128, false));
    // Under a mask, too, tiles of 256 of few queries are alike: 144 would be two rounds.
    CHECK(gets<WideHopper64>(48, 768, 16384, 64, true));
    CHECK(gets<WideHopper64>(48, 768, 16384, 64, false));
}

TEST_CASE("hopper: where the suite measures the heap, the size is that of half the length") {
    // check_heap() takes what the executor holds at 960 tokens from what it holds at 1920.
    AttentionProblem p{.len_q = 960, .len_kv = 960, .head_dim = 64, .causal = true};
    for (const DType dtype : {DType::bf16, DType::f16}) {
        p.dtype = dtype;
        const auto threads_at = [&](std::int64_t length) {
            p.len_q = p.len_kv = length;
            int threads = 0;
            HopperKernel::with_config(p, PretendedHopper::MULTIPROCESSORS,
                                      [&]<class Config>() { threads = Config::THREADS; });
            return threads;
        };
        CHECK(threads_at(960) == threads_at(1920));
    }
}

TEST_CASE("hopper: pairs of blocks on as many multiprocessors as there are") {
    const AttentionProblem p{.len_q = 1000, .len_kv = 1000, .head_dim = 128, .dtype = DType::bf16};
    CHECK(hopper_blocks<PairedHopper128<Rescale::rare>>(p, 5) == 4);
    CHECK(hopper_blocks<PairedHopper128<Rescale::rare>>(p, 132) == 6);
    CHECK(gets<PairedHopper128<Rescale::rare>>(1, 16384, 16384, 128, false, 2));
    CHECK(gets<LongHopper128<Rescale::rare>>(1, 16384, 16384, 128, false, 1));
}

TEST_CASE("hopper: blocks fetch every tile once") {
    const AttentionProblem p{.batch = 2,
                             .heads_q = 5,
                             .heads_kv = 5,
                             .len_q = 300,
                             .len_kv = 300,
                             .dtype = DType::bf16,
                             .causal = true};
    AttentionData<BFloat16> data(p, 3);
    alignas(64) std::byte workspace[sizeof(int)];
    run_hopper_config_on_executor<OneSize<LongHopper64<Rescale::rare>>, LongHopper64<Rescale::rare>,
                                  BFloat16>(p, data.tensors(), workspace, {}, [](const auto&) {});
    int fetched = 0;
    std::memcpy(&fetched, workspace, sizeof fetched);
    // Each block is given one and fetches until there is none.
    CHECK(fetched == 2 * 5 * 2);
}

TEST_CASE("hopper: a head and a batch that are broadcast") {
    AttentionProblem p{
        .batch = 2, .heads_q = 2, .heads_kv = 2, .len_q = 70, .len_kv = 70, .dtype = DType::bf16};
    AttentionData<BFloat16> data(p, 5);
    AttentionTensors tensors = data.tensors();
    tensors.k.strides.head = tensors.v.strides.head = 0;
    tensors.k.strides.batch = tensors.v.strides.batch = 0;
    const ReferenceResult gold = reference_attention(p, tensors);
    alignas(64) std::byte workspace[64];
    attention(EXECUTOR_HOPPER, p, tensors, workspace);
    check_against(gold, {{data.o.begin(), data.o.end()}, data.lse});
}

TEST_CASE("hopper: what TMA cannot read is refused before anything is launched") {
    AttentionProblem p{
        .batch = 2, .heads_q = 2, .heads_kv = 2, .len_q = 9, .len_kv = 9, .dtype = DType::bf16};
    AttentionData<BFloat16> data(p, 1);
    const auto said = [&](auto change) {
        AttentionTensors tensors = data.tensors();
        change(tensors);
        return refusal([&] { attention(EXECUTOR_HOPPER, p, tensors, {}); });
    };
    CHECK(said([](AttentionTensors& t) { t.k.strides.token = 68; }) ==
          "executor_hopper: K's token stride is 68 elements; TMA needs a multiple of 8 (16 bytes)");
    CHECK(said([](AttentionTensors& t) { t.v.strides.head = 9 * 64 + 4; }) ==
          "executor_hopper: V's head stride is 580 elements; TMA needs a multiple of 8 (16 bytes)");
    CHECK(said([](AttentionTensors& t) { t.q.strides.batch += 1; }) ==
          "executor_hopper: Q's batch stride is 1153 elements; TMA needs a multiple of 8 (16 "
          "bytes)");
    CHECK(said([](AttentionTensors& t) { t.v.strides.token = 0; }) ==
          "executor_hopper: V's token stride is 0; TMA needs tokens apart");
    CHECK(said([](AttentionTensors& t) {
              t.q.data = static_cast<const BFloat16*>(t.q.data) + 1;
          }).starts_with("executor_hopper: Q begins 2 bytes after a multiple of 16"));
    CHECK(said([](AttentionTensors& t) { t.k.strides.batch = std::int64_t{1} << 39; }) ==
          "executor_hopper: K's batch stride is 549755813888 elements; TMA needs less than "
          "549755813888");
    CHECK(said([](AttentionTensors&) {}).empty());
    // A stride that is never walked may be anything.
    p.batch = p.heads_q = p.heads_kv = 1;
    CHECK(tma_why_unsupported(p, {.q = {data.q.data(), DType::bf16, p.q_shape(), {3, 5, 64}},
                                  .k = {data.k.data(), DType::bf16, p.kv_shape(), {3, 5, 64}},
                                  .v = {data.v.data(), DType::bf16, p.kv_shape(), {3, 5, 64}},
                                  .o = {data.o.data(), DType::bf16, p.q_shape(), {3, 5, 64}},
                                  .lse = {}})
              .empty());
}

TEST_CASE("hopper: tensors as TMA wants them described") {
    BFloat16 element;
    const BoxSource dense = box_source(&element, {2, 3, 5, 64}, {960, 320, 64});
    CHECK(dense.extents == std::array<std::int64_t, 4>{64, 5, 3, 2});
    CHECK(dense.strides == std::array<std::int64_t, 3>{64, 320, 960});
    const BoxSource broadcast = box_source(&element, {2, 3, 5, 60}, {320, 0, 64});
    CHECK(broadcast.extents == std::array<std::int64_t, 4>{60, 5, 1, 2});
    CHECK(broadcast.strides == std::array<std::int64_t, 3>{64, 64, 320});
    const BoxSource one = box_source(&element, {1, 1, 1, 60}, {7, 7, 7});
    CHECK(one.extents == std::array<std::int64_t, 4>{60, 1, 1, 1});
    CHECK(one.strides == std::array<std::int64_t, 3>{64, 64, 64});
    const BoxSource nothing = box_source(nullptr, {2, 3, 0, 60}, {0, 0, 60});
    CHECK(nothing.data != nullptr);
    CHECK(nothing.extents == std::array<std::int64_t, 4>{8, 1, 1, 1});
}

TEST_CASE("hopper: what fits a multiprocessor") {
    constexpr std::size_t OF_MULTIPROCESSOR = 228 * 1024, RESERVED = 1024;
    for_each_kernel([&]<class Kernel, class Config>(std::string_view name) {
        CAPTURE(std::string(name));
        CHECK(Config::SHARED_BYTES <= HOPPER_SHARED_LIMIT);
        if constexpr (requires { Config::BLOCKS_PER_SM; })
            CHECK(Config::BLOCKS_PER_SM * (Config::SHARED_BYTES + RESERVED) <= OF_MULTIPROCESSOR);
        if constexpr (requires { Config::CONSUMER_REGISTERS; }) {
            // What a launch gives to each thread (multiples of 8), and what they have afterwards.
            const int given = 65536 / Config::THREADS / 8 * 8 * Config::THREADS;
            CHECK(128 * (Config::PRODUCER_REGISTERS +
                         Config::WARPGROUPS * Config::CONSUMER_REGISTERS) <=
                  given);
        }
    });
}

/// Asks for registers as a kernel does whose first warpgroup loads.
template <int WARPGROUPS, int PRODUCER, int CONSUMER>
struct Asking {
    static constexpr int THREADS = 128 * (WARPGROUPS + 1);
    static constexpr int PRODUCER_REGISTERS = PRODUCER, CONSUMER_REGISTERS = CONSUMER;
};

TEST_CASE("hopper: registers that are moved were given to the block at its launch") {
    CHECK(launch_registers(128) == 255);
    CHECK(launch_registers(384) == 168);
    CHECK(launch_registers(416) == 128);  // a 13th warp costs as much as four
    CHECK(launch_registers(512) == 128);
    CHECK(launch_registers(640) == 96);
    CHECK(moved_registers(640, 24, 112) == 128 * 24 + 512 * 112);
    CHECK(finds_its_registers<Asking<2, 24, 240>>());
    CHECK_FALSE(finds_its_registers<Asking<2, 32, 248>>());
    CHECK(finds_its_registers<Asking<3, 32, 160>>());
    CHECK_FALSE(finds_its_registers<Asking<3, 40, 160>>());
    CHECK(finds_its_registers<Asking<4, 24, 112>>());
    CHECK_FALSE(finds_its_registers<Asking<4, 24, 120>>());
    CHECK_FALSE(finds_its_registers<Asking<2, 16, 240>>());      // fewer than setmaxnreg knows
    CHECK_FALSE(finds_its_registers<Asking<2, 24, 236>>());      // not a multiple of 8
    CHECK(finds_its_registers<ShortHopper64<Rescale::rare>>());  // moves none
}

TEST_CASE("hopper: what a launch should take") {
    constexpr TilePace PACE{.launch = 1, .start = 2, .step = 3, .alone = 5};
    CHECK(PACE.tile(4, 2) == 2 + 4 * 6);
    CHECK(PACE.tile(4, 1) == 2 + 4 * 5);  // alone
    AttentionProblem p{.batch = 2, .heads_q = 4, .heads_kv = 4, .len_q = 256, .len_kv = 130};
    const auto on = [&](int multiprocessors, const TileKind& kind) {
        return predicted_microseconds(p, multiprocessors, kind, PACE);
    };
    // 16 tiles, three blocks of keys: four rounds; one; two at a time, and two or one in the last.
    CHECK(on(4, {.rows = 128, .at_once = 1}) == 1 + 4 * (2 + 3 * 5));
    CHECK(on(16, {.rows = 128, .at_once = 1}) == 1 + (2 + 3 * 5));
    CHECK(on(3, {.rows = 128, .at_once = 2}) == 1 + 2 * (2 + 3 * 6) + (2 + 3 * 6));
    CHECK(on(7, {.rows = 128, .at_once = 2}) == 1 + (2 + 3 * 6) + (2 + 3 * 5));
    // Two blocks of threads to a tile: half as many at once, and none on one multiprocessor.
    CHECK(on(5, {.rows = 128, .at_once = 1, .blocks = 2}) == on(2, {.rows = 128, .at_once = 1}));
    CHECK(std::isinf(on(1, {.rows = 128, .at_once = 1, .blocks = 2})));
    // A tile that is not full counts as one.
    p.len_q = 160;
    CHECK(on(16, {.rows = 128, .at_once = 1}) == 1 + (2 + 3 * 5));
    p.causal = true;
    p.len_q = p.len_kv = 512;
    // 32 tiles of two to eight blocks, five on the mean: 16 follow one another on each of two
    // multiprocessors. On many, the longest decides.
    CHECK(on(2, {.rows = 128, .at_once = 1}) == 1 + 16 * (2 + 5 * 5));
    CHECK(on(100, {.rows = 128, .at_once = 1}) == 1 + (2 + 8 * 5));
    CHECK(on(10, {.rows = 128, .at_once = 4}) == 1 + (2 + 8 * 7.5));
    // A few queries of many keys: nearly alike, and so in rounds, of which the second counts.
    p.len_kv = 64 * 100;
    CHECK(on(20, {.rows = 128, .at_once = 1}) == 1 + 2 * (2 + 94 * 5));
    p.len_kv = 0;
    CHECK(on(100, {.rows = 128, .at_once = 1}) == 3);
    p.len_q = 0;
    CHECK(on(100, {.rows = 128, .at_once = 1}) == 1);
}

TEST_CASE("hopper: sizes for a problem") {
    AttentionProblem p{.batch = 4,
                       .heads_q = 12,
                       .heads_kv = 12,
                       .head_dim = 64,
                       .dtype = DType::bf16,
                       .causal = true};
    const auto chosen = [&]<class Config>(std::type_identity<Config>, std::int64_t length) {
        p.len_q = p.len_kv = length;
        bool same = false;
        HopperKernel::with_config(p, 132,
                                  [&]<class Chosen>() { same = std::is_same_v<Chosen, Config>; });
        return same;
    };
    using enum Rescale;
    CHECK(chosen(std::type_identity<FewHopper64<rare>>{}, 512));
    CHECK(chosen(std::type_identity<LongHopper64<rare>>{}, 1000));
    CHECK(chosen(std::type_identity<LongHopper64<rare>>{}, 1024));
    CHECK(chosen(std::type_identity<LongHopper64<rare>>{}, 16384));
    p.dtype = DType::f16;  // whose weights have no room for a reference that stays
    CHECK(chosen(std::type_identity<FewHopper64<lazy>>{}, 512));
    CHECK(chosen(std::type_identity<LongHopper64<lazy>>{}, 16384));
    p.dtype = DType::bf16;
    p.causal = false;
    CHECK(chosen(std::type_identity<ShortHopper64<rare>>{}, 640));  // 480 blocks of 64, all at once
    CHECK(chosen(std::type_identity<WideHopper64>{}, 1024));        // 192 tiles of 256 queries
    CHECK(chosen(std::type_identity<LongHopper64<rare>>{}, 1280));  // 240, 9/10 of two rounds
    CHECK(chosen(std::type_identity<MediumHopper64<rare>>{}, 1536));  // 288, 7/10 of three
    CHECK(chosen(std::type_identity<LongHopper64<rare>>{}, 2048));
    p.batch = 1;
    CHECK(chosen(std::type_identity<MediumHopper64<rare>>{}, 2048));  // 132 tiles of 192 queries
    p.causal = true;
    p.heads_q = p.heads_kv = 1;
    CHECK(chosen(std::type_identity<WideHopper64>{}, 16384));
    p.batch = 4;
    p.heads_q = p.heads_kv = 16;
    p.head_dim = 80;
    CHECK(chosen(std::type_identity<ShortHopper128<rare>>{}, 512));
    CHECK(chosen(std::type_identity<LongHopper128<rare>>{}, 1024));
    p.dtype = DType::f16;
    CHECK(chosen(std::type_identity<PairedHopper128<lazy>>{}, 4096));
    CHECK(has_range_for<BFloat16>(rare));
    CHECK_FALSE(has_range_for<Float16>(rare));
    p.head_dim = 129;
    CHECK(EXECUTOR_HOPPER.why_unsupported(p) == "head_dim is 129, at most 128 is possible");
    CHECK(hopper_capability_why_unsupported(90).empty());
    CHECK(hopper_capability_why_unsupported(100) ==
          "compute capability 9.0 (Hopper) is needed, whose warpgroup products no other has; the "
          "GPU has 10.0");
}

TEST_CASE("hopper: the polynomial is 2^x") {
    double worst = 0;
    for (float x = -126.0f; x < 3.0f; x += 0.00137f) {
        const double exact = std::exp2(static_cast<double>(x));
        const double error = std::fabs(static_cast<double>(polynomial_exp2(x)) - exact) / exact;
        worst = larger_or_nan(worst, error);
    }
    CHECK(worst < 9e-5);
    CHECK(polynomial_exp2(0.0f) == 1.0f);
    CHECK(polynomial_exp2(-7.0f) == 0x1p-7f);
    CHECK(polynomial_exp2(-1e30f) == 0.0f);
    CHECK(polynomial_exp2(minus_infinity()) == 0.0f);  // a masked key has no weight
}

}  // namespace
}  // namespace fa
