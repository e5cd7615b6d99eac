// What the CPU executor knows of Hopper: products by warpgroups, copies of boxes, barriers in shared
// memory, named barriers.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "common/hopper_language.h"
#include "tests/executor_block.h"

namespace fa {
namespace {

using executor::Counters;
using executor::Fault;
using executor::make_executor_map;
using executor::Options;

unsigned thread() {
    return threadIdx.x;
}

/// Where the element (row, column) of boxes one behind the other lies, in bytes: the formula of
/// chapter 8, not the executor's.
std::uint32_t in_boxes(std::uint32_t row, std::uint32_t column, std::uint32_t box_bytes) {
    return column / 64 * box_bytes + row * 128 + (column % 64 / 8 ^ row % 8) * 16 + column % 8 * 2;
}

// --- products ------------------------------------------------------------------------------------

/// Small multiples of 1/8, exact in both types.
float a_at(unsigned row, unsigned k) {
    return static_cast<float>((5 * row + 3 * k) % 17) / 8 - 1;
}
float b_at(unsigned k, unsigned n) {
    return static_cast<float>((7 * k + 11 * n) % 19) / 8 - 1;
}

/// Which instructions make the product.
struct ProductCase {
    bool b_is_rows, a_in_registers, add;
};

/// D (+)= A·B with A 64 × DEPTH, by two warpgroups of which each has its own A and D.
template <class T, int N, bool B_IS_ROWS, int DEPTH>
void check_product(bool a_in_registers, bool add, const Options& options) {
    CAPTURE(N);
    CAPTURE(DEPTH);
    CAPTURE(B_IS_ROWS);
    CAPTURE(a_in_registers);
    CAPTURE(add);
    constexpr std::uint32_t A_BOX = 64 * 128;
    constexpr std::uint32_t B_BOX = (B_IS_ROWS ? DEPTH : N) * 128;
    constexpr std::uint32_t A_BYTES = (DEPTH + 63) / 64 * A_BOX;
    constexpr std::uint32_t B_BYTES = ((B_IS_ROWS ? N : DEPTH) + 63) / 64 * B_BOX;
    std::vector<float> d(2 * 64 * N, NAN);
    run_block(
        256, 2 * A_BYTES + B_BYTES,
        [&] {
            const unsigned warpgroup = thread() / 128, t = thread() % 128;
            const std::uint32_t a0 = shared_address(warpgroup * A_BYTES);
            const std::uint32_t b0 = shared_address(2 * A_BYTES);
            // Two elements a store.
            for (unsigned i = t; i < 64 * DEPTH / 2; i += 128) {
                const unsigned row = 2 * i / DEPTH, k = 2 * i % DEPTH;
                store_shared(a0 + in_boxes(row, k, A_BOX),
                             pack<T>(a_at(row + 64 * warpgroup, k),
                                     a_at(row + 64 * warpgroup, k + 1)));
            }
            for (unsigned i = thread(); i < N * DEPTH / 2; i += 256) {
                constexpr unsigned WIDTH = B_IS_ROWS ? N : DEPTH;
                const unsigned row = 2 * i / WIDTH, column = 2 * i % WIDTH;
                store_shared(b0 + in_boxes(row, column, B_BOX),
                             B_IS_ROWS ? pack<T>(b_at(row, column), b_at(row, column + 1))
                                       : pack<T>(b_at(column, row), b_at(column + 1, row)));
            }
            publish_for_copies();
            __syncthreads();

            const unsigned g = t % 32 / 4, q = t % 4, first_row = t / 32 * 16 + g;
            float own[N / 8][4];
            for (auto& piece : own)
                for (float& x : piece) x = 0.5f;
            std::uint32_t a_registers[DEPTH / 16][4];
            for (unsigned step = 0; step < DEPTH / 16; ++step)
                for (unsigned n = 0; n < 4; ++n) {
                    const unsigned row = 64 * warpgroup + first_row + n % 2 * 8;
                    const unsigned k = 16 * step + 2 * q + n / 2 * 8;
                    a_registers[step][n] = pack<T>(a_at(row, k), a_at(row, k + 1));
                }
            using P = Product<T, N, B_IS_ROWS>;
            fence_products();
            for (unsigned step = 0; step < DEPTH / 16; ++step) {
                const Matrix a =
                    by_rows(a0) + step / 4 * (A_BOX / 16) + step % 4 * DEEPER_BY_ROWS;
                const Matrix b = B_IS_ROWS ? by_columns(b0, B_BOX) + step * DEEPER_BY_COLUMNS
                                           : by_rows(b0) + step / 4 * (B_BOX / 16) +
                                                 step % 4 * DEEPER_BY_ROWS;
                if (a_in_registers)
                    P::add(own, a_registers[step], b);
                else if (step == 0 && !add)
                    P::multiply(own, a, b);
                else
                    P::add(own, a, b);
            }
            commit_products();
            CHECK(std::isnan(own[0][0]));
            wait_products<0>();
            pin(own);
            for (unsigned j = 0; j < N / 8; ++j)
                for (unsigned e = 0; e < 4; ++e)
                    d[(64 * warpgroup + first_row + e / 2 * 8) * N + 8 * j + 2 * q + e % 2] =
                        own[j][e];
        },
        options);
    int wrong = 0;
    for (unsigned row = 0; row < 128; ++row)
        for (unsigned n = 0; n < N; ++n) {
            double sum = a_in_registers || add ? 0.5 : 0;
            for (unsigned k = 0; k < DEPTH; ++k)
                sum += static_cast<double>(a_at(row, k)) * b_at(k, n);
            wrong += d[row * N + n] != sum;
        }
    CHECK(wrong == 0);
}

template <class T, int N, bool B_IS_ROWS>
void check_products(bool a_in_registers, bool add) {
    for (const Options& options : {Options{}, Options{.reverse_order = true}}) {
        check_product<T, N, B_IS_ROWS, 64>(a_in_registers, add, options);
        check_product<T, N, B_IS_ROWS, 128>(a_in_registers, add, options);
    }
}

TEST_CASE_TEMPLATE("executor: wgmma multiplies the matrices of all layouts", T, BFloat16, Float16) {
    for (bool a_in_registers : {false, true})
        for (bool add : {false, true}) {
            check_products<T, 64, false>(a_in_registers, add);
            check_products<T, 80, false>(a_in_registers, add);
            check_products<T, 128, false>(a_in_registers, add);
            check_products<T, 64, true>(a_in_registers, add);
            check_products<T, 128, true>(a_in_registers, add);
        }
}

// --- a ring of stages ----------------------------------------------------------------------------

/// What a kernel can do wrong.
enum class Mistake {
    none,
    early_hand_back,       ///< a stage is handed back before the product that reads it is waited for
    one_for_all,           ///< one warp hands back for its warpgroup: the others can miss a phase
    no_publication,        ///< of the result, before it is stored
    no_named_barrier,      ///< between the warps that write the result and the thread that stores it
    no_store_wait,
    no_wait_for_stage,     ///< products do not wait for the box
    too_few_bytes,         ///< announced
    too_many_bytes,
    one_stage_too_many,    ///< loaded
    stage_handed_back_by_nobody,
    touched_accumulators,
    touched_operand,
    no_fence,
    no_product_wait,
    one_warp_multiplies_less,
    one_warp_changes_other_registers,
    barriers_not_published,
    no_block_barrier,      ///< between the initialisation of barriers and their use
    two_arrivals,          ///< of one warp, for one stage
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
            init_barrier(empty + 8 * s,
                         (mistake == Mistake::one_for_all ? 1 : 4) * warpgroups);
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
        const std::uint32_t r[4]{
            pack<BFloat16>(d[2 * i][0], d[2 * i][1]), pack<BFloat16>(d[2 * i][2], d[2 * i][3]),
            pack<BFloat16>(d[2 * i + 1][0], d[2 * i + 1][1]),
            pack<BFloat16>(d[2 * i + 1][2], d[2 * i + 1][3])};
        store_matrices(own + row * 128 + ((2 * i + t % 32 / 16) ^ row % 8) * 16, r);
    }
    if (mistake != Mistake::no_publication) publish_for_copies();
    if (mistake != Mistake::no_named_barrier) named_barrier_wait(1 + warpgroup, 128);
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
    const TensorMap out_map = make_executor_map(
        out.data(), {64, 64 * warpgroups, 1, 1}, {64, 64 * 64 * warpgroups, 64 * 64 * warpgroups},
        64);
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
    for (const Options& options : {Options{}, Options{.reverse_order = true},
                                   Options{.copies_arrive_at_once = true}, Options{.shuffle = 1}}) {
        CAPTURE(options.shuffle);
        fault(Mistake::early_hand_back, "a product of warp", options);
        fault(Mistake::no_publication, "without publish_for_copies()", options);
        fault(Mistake::no_named_barrier, "no order between", options);
        fault(Mistake::no_store_wait, "wait_stores_read<0>() is missing", options);
        fault(Mistake::no_wait_for_stage, "box", options);
        fault(Mistake::too_few_bytes, "", options);
        fault(Mistake::too_many_bytes, "deadlock", options);
        fault(Mistake::one_stage_too_many, "on its way", options);
        fault(Mistake::stage_handed_back_by_nobody, "deadlock", options);
        fault(Mistake::touched_accumulators, "touched", options);
        fault(Mistake::touched_operand, "touched", options);
        fault(Mistake::no_fence, "without fence_products()", options);
        fault(Mistake::no_product_wait, "fence_products()", options);
        fault(Mistake::one_warp_multiplies_less, "do not issue the same products", options);
        fault(Mistake::one_warp_changes_other_registers, "do not issue the same products", options);
        fault(Mistake::barriers_not_published, "has not published", options);
        fault(Mistake::no_block_barrier, "barrier", options);
        fault(Mistake::two_arrivals, "", options);
    }
}

}  // namespace
}  // namespace fa
