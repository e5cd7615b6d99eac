// What the CPU executor knows of Hopper: products by warpgroups, copies of boxes, barriers in shared
// memory, named barriers.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
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
        fault(Mistake::one_for_all, "a product of warp", options);
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

// --- boxes ---------------------------------------------------------------------------------------

/// A tensor [2, 3, 5, 80] with gaps between its tokens, heads and batch entries; each element says
/// where it is.
struct Tensor4 {
    static constexpr std::int64_t CHANNELS = 80, TOKENS = 5, HEADS = 3, BATCH = 2;
    static constexpr std::int64_t TOKEN = 88, HEAD = 6 * TOKEN, ENTRY = 4 * HEAD;
    alignas(16) std::array<std::uint16_t, 2 * ENTRY> elements{};

    Tensor4() {
        for (std::int64_t i = 0; i < 2 * ENTRY; ++i)
            elements[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>(i + 1);
    }
    /// What a load finds; 0 outside.
    std::uint16_t at(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t c) const {
        const bool inside = b >= 0 && b < BATCH && h >= 0 && h < HEADS && t >= 0 && t < TOKENS &&
                            c >= 0 && c < CHANNELS;
        return inside ? elements[static_cast<std::size_t>(b * ENTRY + h * HEAD + t * TOKEN + c)]
                      : std::uint16_t{0};
    }
    TensorMap map(int rows) {
        return make_executor_map(elements.data(), {CHANNELS, TOKENS, HEADS, BATCH},
                                 {TOKEN, HEAD, ENTRY}, rows);
    }
};

TEST_CASE("executor: a box is loaded swizzled, and what lies outside the tensor is zero") {
    Tensor4 tensor;
    for (bool at_once : {false, true})
        for (const auto& at : {std::array{0, 0, 0, 0}, {16, 2, 1, 1}, {64, 0, 2, 1}, {-8, -3, 0, 0},
                               {-64, 0, 0, 0}, {80, 0, 0, 0}, {0, 5, 0, 0}, {0, -8, 0, 0},
                               {0, 0, -1, 0}, {0, 0, 3, 0}, {0, 0, 0, 2}, {0, 0, 0, -1}}) {
            CAPTURE(at[0]);
            CAPTURE(at[1]);
            int wrong = 0;
            std::uint64_t bytes = 0;
            const TensorMap map = tensor.map(8);
            const Counters counters = run_block(
                32, 3072,
                [&] {
                    const std::uint32_t box = shared_address(1024), barrier = shared_address(2048);
                    if (thread() == 0) {
                        init_barrier(barrier, 1);
                        publish_barriers();
                        arrive_expecting(barrier, 1024);
                        load_box(box, map, barrier, at[0], at[1], at[2], at[3]);
                    }
                    __syncthreads();
                    wait_phase(barrier, 0);
                    for (int row = 0; row < 8; ++row)
                        for (int column = 2 * static_cast<int>(thread());
                             column < 2 * static_cast<int>(thread()) + 2; ++column) {
                            const auto expected = tensor.at(at[3], at[2], at[1] + row,
                                                            at[0] + column);
                            wrong += load_shared<std::uint16_t>(
                                         box + in_boxes(static_cast<std::uint32_t>(row),
                                                        static_cast<std::uint32_t>(column), 0)) !=
                                     expected;
                            bytes += expected != 0 ? 2 : 0;
                        }
                },
                {.copies_arrive_at_once = at_once});
            CHECK(wrong == 0);
            CHECK(counters.global_load_bytes == bytes);
        }
}

TEST_CASE("executor: a box is stored where the tensor is, and nowhere else") {
    for (const auto& at : {std::array{0, 0, 0, 0}, {16, 2, 1, 1}, {64, 0, 2, 1}, {-8, -3, 0, 0},
                           {-64, 0, 0, 0}, {0, 5, 0, 0}, {0, 0, 3, 0}, {0, 0, 0, -1}}) {
        Tensor4 tensor;
        const Tensor4 before;
        const TensorMap map = tensor.map(8);
        const Counters counters = run_block(32, 1024, [&] {
            for (std::uint32_t row = 0; row < 8; ++row)
                store_shared(shared_address(in_boxes(row, 2 * thread(), 0)),
                             (row * 64 + 2 * thread()) * 0x00010001u + 0x90018000u);
            publish_for_copies();
            warp_barrier();
            if (thread() == 0) {
                store_box(map, shared_address(0), at[0], at[1], at[2], at[3]);
                commit_stores();
                wait_stores_read<0>();
            }
        });
        int wrong = 0;
        std::uint64_t bytes = 0;
        for (int b = 0; b < 2; ++b)
            for (int h = 0; h < 4; ++h)
                for (int t = 0; t < 6; ++t)
                    for (int c = 0; c < 88; ++c) {
                        const auto i = static_cast<std::size_t>(b * Tensor4::ENTRY +
                                                                h * Tensor4::HEAD +
                                                                t * Tensor4::TOKEN + c);
                        const int row = t - at[1], column = c - at[0];
                        const bool stored = b == at[3] && h == at[2] && h < 3 && t < 5 && c < 80 &&
                                            row >= 0 && row < 8 && column >= 0 && column < 64;
                        const int value = row * 64 + (column & ~1) + (column % 2 ? 0x9001 : 0x8000);
                        wrong += tensor.elements[i] != (stored ? value : before.elements[i]);
                        bytes += stored ? 2 : 0;
                    }
        CHECK(wrong == 0);
        CHECK(counters.global_store_bytes == bytes);
    }
}

/// Runs a kernel of `threads` threads with a barrier for one arrival at byte 4096.
void with_barrier(unsigned threads, const std::function<void()>& kernel,
                  const Options& options = {}) {
    run_block(
        threads, 8192,
        [&] {
            if (thread() == 0) {
                init_barrier(shared_address(4096), 1);
                publish_barriers();
            }
            __syncthreads();
            kernel();
        },
        options);
}

#define CHECK_FAULT(call, text) CHECK_THROWS_WITH_AS(call, doctest::Contains(text), Fault)

TEST_CASE("executor: wrong boxes are refused") {
    Tensor4 tensor;
    const auto load = [&](std::uint32_t to, const TensorMap& map, std::uint32_t barrier = 4096) {
        with_barrier(32, [&] {
            if (thread() == 0) load_box(to, map, barrier, 0, 0, 0, 0);
        });
    };
    const auto store = [&](std::uint32_t from, const TensorMap& map) {
        with_barrier(32, [&] {
            if (thread() == 0) store_box(map, from, 0, 0, 0, 0);
        });
    };
    const TensorMap map = tensor.map(8);
    CHECK_FAULT(load(512, map), "not a multiple of 1024");
    CHECK_FAULT(load(8192, map), "8192..9216 of 8192");
    CHECK_FAULT(load(0, map, 4104), "no barrier was initialised at byte 4104");
    CHECK_FAULT(store(128, map), "not a multiple of 1024");
    CHECK_FAULT(load(0, tensor.map(0)), "0 rows");
    CHECK_FAULT(load(0, tensor.map(257)), "257 rows");
    TensorMap read_only = map;
    read_only.written = nullptr;
    CHECK_FAULT(store(0, read_only), "for loads only");
    TensorMap shifted = map;
    ++shifted.elements;
    CHECK_FAULT(load(0, shifted), "multiples of 16 bytes");
    shifted = map;
    shifted.head_stride += 4;
    CHECK_FAULT(load(0, shifted), "multiples of 16 bytes");
}

TEST_CASE("executor: a box that is not waited for is nothing to look at") {
    Tensor4 tensor;
    const TensorMap map = tensor.map(8);
    for (bool at_once : {false, true}) {
        const auto run = [&](const std::function<void()>& then) {
            with_barrier(
                64,
                [&] {
                    if (thread() == 0) {
                        arrive_expecting(4096, 1024);
                        load_box(0, map, 4096, 0, 0, 0, 0);
                    }
                    then();
                },
                {.copies_arrive_at_once = at_once});
        };
        const auto wait = [] { wait_phase(4096, 0); };
        CHECK_NOTHROW(run([&] {
            wait();
            load_shared<float>(0);
        }));
        // By the thread that issued the copy, by another, by another lane of a warp that waited.
        CHECK_FAULT(run([&] {
                        if (thread() == 0) load_shared<float>(0);
                        wait();
                    }),
                    "byte 0");
        CHECK_FAULT(run([&] {
                        if (thread() < 32) wait();
                        if (thread() == 63) load_shared<float>(1020);
                    }),
                    "byte 1008");
        CHECK_FAULT(run([&] {
                        if (thread() == 0) wait();
                        if (thread() == 1) load_shared<float>(0);
                    }),
                    "byte 0");
        CHECK_NOTHROW(run([&] {
            if (thread() == 0) wait();
            if (thread() < 32) warp_barrier();
            if (thread() == 1) load_shared<float>(0);
        }));
        CHECK_FAULT(run([&] {
                        if (thread() == 40) store_shared(256, 1.0f);
                        wait();
                    }),
                    "byte 256");
        CHECK_FAULT(run([&] {
                        if (thread() == 0) {
                            arrive_expecting(4096, 1024);
                            load_box(0, map, 4096, 0, 0, 0, 0);
                        }
                    }),
                    "");
        CHECK_FAULT(run([] {}), "the block ends");
    }
}

TEST_CASE("executor: a box is loaded only where everyone has finished") {
    Tensor4 tensor;
    const TensorMap map = tensor.map(8);
    const auto run = [&](bool is_write, bool ordered, const Options& options) {
        with_barrier(
            64,
            [&] {
                if (thread() == 40) {
                    if (is_write)
                        store_shared(64, 1.0f);
                    else
                        load_shared<float>(64);
                }
                if (thread() >= 32 && ordered) named_barrier_arrive(1, 64);
                if (thread() < 32) {
                    if (ordered) named_barrier_wait(1, 64);
                    if (thread() == 0) {
                        arrive_expecting(4096, 1024);
                        load_box(0, map, 4096, 0, 0, 0, 0);
                    }
                    wait_phase(4096, 0);
                }
            },
            options);
    };
    for (bool is_write : {false, true})
        for (const Options& options : {Options{}, Options{.reverse_order = true}}) {
            CHECK_NOTHROW(run(is_write, true, options));
            CHECK_FAULT(run(is_write, false, options), "byte 64");
        }
}

// --- barriers ------------------------------------------------------------------------------------

TEST_CASE("executor: phases of a barrier order what threads do") {
    // Two threads of different warps take turns in writing one word.
    for (const Options& options : {Options{}, Options{.reverse_order = true}, Options{.shuffle = 7}}) {
        int last = 0;
        const auto turns = [&](bool wait) {
            run_block(
                64, 64,
                [&] {
                    if (thread() == 0) {
                        store_shared(0, 0);
                        init_barrier(8, 1);
                        init_barrier(16, 1);
                    }
                    __syncthreads();
                    if (thread() % 32 != 5) return;
                    const bool first = thread() < 32;
                    for (int i = 0; i < 10; ++i) {
                        if (wait && !(first && i == 0))
                            wait_phase(first ? 16 : 8, static_cast<unsigned>(first ? i - 1 : i) & 1);
                        store_shared(0, load_shared<int>(0) + 1);
                        arrive(first ? 8 : 16);
                    }
                    if (!first) last = load_shared<int>(0);
                },
                options);
        };
        turns(true);
        CHECK(last == 20);
        CHECK_FAULT(turns(false), "race in shared memory at byte 0");
    }
}

TEST_CASE("executor: a warp that can miss a phase is delayed until it waits for ever") {
    // Warp 1 answers every phase; warp 2 only watches, and nothing keeps warp 0 from going on.
    const auto run = [](const Options& options) {
        run_block(
            96, 16,
            [&] {
                if (thread() == 0) {
                    init_barrier(0, 1);
                    init_barrier(8, 1);
                }
                __syncthreads();
                for (unsigned i = 0; i < 20; ++i) {
                    if (thread() == 0) {
                        wait_phase(8, (i & 1) ^ 1);
                        arrive(0);
                    }
                    if (thread() >= 32) wait_phase(0, i & 1);
                    if (thread() == 32) arrive(8);
                }
            },
            options);
    };
    CHECK_NOTHROW(run({}));
    int deadlocks = 0;
    for (std::uint64_t shuffle = 1; shuffle <= 50; ++shuffle) try {
            run({.shuffle = shuffle});
        } catch (const Fault& fault) {
            ++deadlocks;
            CHECK(std::string(fault.what()).find("deadlock") == 0);
        }
    MESSAGE(fmt::format("{} of 50", deadlocks));
    CHECK(deadlocks > 5);
}

TEST_CASE("executor: what goes wrong with barriers in shared memory is caught") {
    CHECK_FAULT(run_block(32, 64, [] { wait_phase(8, 0); }), "no barrier was initialised at byte 8");
    CHECK_FAULT(run_block(32, 64, [] { arrive(0); }), "no barrier was initialised at byte 0");
    CHECK_FAULT(run_block(32, 64, [] { init_barrier(4, 1); }), "not a multiple of 8");
    CHECK_FAULT(run_block(32, 64, [] { init_barrier(64, 1); }), "beyond the end");
    CHECK_FAULT(run_block(32, 64, [] { init_barrier(0, 0); }), "0 arrivals");
    CHECK_FAULT(run_block(32, 64, [] { init_barrier(0, 1); }), "a second time");
    CHECK_FAULT(with_barrier(32, [] { wait_phase(4096, 2); }), "parity 2");
    CHECK_FAULT(with_barrier(32, [] { wait_phase(4096, 0); }),
                "deadlock: no thread can go on, this one waits at the barrier at byte 4096 of "
                "shared memory for the end of a phase of parity 0: the present phase has parity 0, "
                "1 of 1 arrivals and 0 bytes are missing (block 0,0,0, thread 0,0,0)");
    CHECK_NOTHROW(with_barrier(32, [] { wait_phase(4096, 1); }));  // the phase before the first
    CHECK_FAULT(with_barrier(32,
                             [] {
                                 if (thread() < 2) arrive_expecting(4096, 64);
                             }),
                "more arrivals than the 1");
    CHECK_FAULT(with_barrier(32,
                             [] {
                                 if (thread() == 0) arrive_expecting(4096, 1 << 20);
                             }),
                "1048576 bytes");
    CHECK_FAULT(with_barrier(32, [] { load_shared<float>(4100); }),
                "ordinary access to the barrier at byte 4096");
    CHECK_FAULT(with_barrier(32,
                             [] {
                                 if (thread() == 9) store_shared(4096, 0.0f);
                             }),
                "ordinary access to the barrier at byte 4096");
    // Some wait for a phase, the others for the block.
    CHECK_FAULT(with_barrier(64,
                             [] {
                                 if (thread() == 33) wait_phase(4096, 0);
                                 __syncthreads();
                             }),
                "deadlock");
}

TEST_CASE("executor: named barriers join parts of a block") {
    for (const Options& options :
         {Options{}, Options{.reverse_order = true}, Options{.shuffle = 3}, Options{.shuffle = 4}}) {
        // Two warps take turns; a third does not take part.
        int sum = 0;
        run_block(
            96, 4,
            [&] {
                const int warp = static_cast<int>(thread() / 32);
                if (warp == 2) return;
                if (thread() == 0) store_shared(0, 0);
                if (warp == 0) named_barrier_arrive(1, 64);
                for (int i = 0; i < 8; ++i) {
                    named_barrier_wait(2 - warp, 64);
                    if (thread() % 32 == 0) store_shared(0, load_shared<int>(0) + 1);
                    if (i < 7 || warp == 1) named_barrier_arrive(1 + warp, 64);
                }
                if (thread() == 0) sum = load_shared<int>(0);
            },
            options);
        CHECK(sum == 16);
    }
}

TEST_CASE("executor: what goes wrong with named barriers is caught") {
    const auto run = [](const std::function<void()>& kernel) { run_block(96, 64, kernel); };
    for (int id : {0, 16})
        CHECK_FAULT(run([&] { named_barrier_wait(id, 96); }), fmt::format("barrier {}", id).c_str());
    for (int threads : {0, 33, 128})
        CHECK_FAULT(run([&] { named_barrier_wait(1, threads); }),
                    fmt::format("of {} threads", threads).c_str());
    CHECK_FAULT(run([] {
                    if (thread() < 64) named_barrier_wait(3, 96);
                }),
                "waits at named barrier 3, where 64 of 96 threads have arrived");
    CHECK_FAULT(run([] { named_barrier_wait(3, thread() < 32 ? 96 : 64); }),
                "of 64 threads, where others came to one of 96");
    CHECK_FAULT(run([] { named_barrier_wait(3, thread() == 5 ? 64 : 96); }), "different numbers");
    CHECK_FAULT(run([] {
                    if (thread() % 32 != 5) named_barrier_wait(3, 96);
                }),
                "");
    // Arriving orders what came before, not what comes after.
    CHECK_FAULT(run([] {
                    if (thread() < 32) named_barrier_wait(3, 64);
                    if (thread() / 32 == 1) named_barrier_arrive(3, 64);
                    if (thread() == 0) store_shared(0, 1);
                    if (thread() == 32) store_shared(0, 1);
                }),
                "race");
}

// --- products, what goes wrong -------------------------------------------------------------------

/// Runs a warpgroup on 32 kB of zeros, published.
void with_zeros(const std::function<void(float (&)[8][4], float (&)[8][4])>& kernel) {
    run_block(128, 32768, [&] {
        for (std::uint32_t i = thread(); i < 2048; i += 128)
            store_shared(16 * i, Packed<float, 4>{});
        publish_for_copies();
        __syncthreads();
        float d[8][4] = {}, other[8][4] = {};
        fence_products();
        kernel(d, other);
    });
}
using Scores = Product<BFloat16, 64, false>;
using Sum = Product<BFloat16, 64, true>;

TEST_CASE("executor: groups of products are waited for in order") {
    with_zeros([](float (&d)[8][4], float (&other)[8][4]) {
        Scores::multiply(d, by_rows(0), by_rows(8192));
        commit_products();
        Scores::multiply(other, by_rows(0), by_rows(8192));
        commit_products();
        wait_products<2>();
        CHECK(std::isnan(d[0][0]));
        wait_products<1>();
        CHECK(d[0][0] == 0);
        CHECK(std::isnan(other[7][3]));
        wait_products<0>();
        CHECK(other[7][3] == 0);
    });
    // The same registers in two groups; the first wait leaves them to the second.
    with_zeros([](float (&d)[8][4], float (&)[8][4]) {
        d[0][0] = 3;
        Scores::add(d, by_rows(0), by_rows(8192));
        commit_products();
        Scores::add(d, by_rows(0), by_rows(8192));
        commit_products();
        wait_products<1>();
        CHECK(std::isnan(d[0][0]));
        wait_products<0>();
        CHECK(d[0][0] == 3);
    });
}

TEST_CASE("executor: wrong products are refused") {
    const auto multiply = [](Matrix a, Matrix b) {
        with_zeros([&](float (&d)[8][4], float (&)[8][4]) { Scores::multiply(d, a, b); });
    };
    CHECK_FAULT(multiply(by_rows(128), by_rows(8192)), "first row of eight");
    CHECK_FAULT(multiply(by_rows(0), by_rows(8192 + 16)), "16 columns");
    CHECK_FAULT(multiply(by_rows(0), by_rows(8192) + 4 * DEEPER_BY_ROWS), "first row of eight");
    CHECK_FAULT(multiply(by_rows(0), by_rows(31 * 1024)), "of 32768");
    CHECK_FAULT(with_zeros([](float (&d)[8][4], float (&)[8][4]) {
                    Sum::multiply(d, by_rows(0), by_columns(8192 + 512, 8192));
                }),
                "by columns");
    CHECK_FAULT(with_zeros([](float (&)[8][4], float (&)[8][4]) {
                    float wide[16][4];
                    Product<BFloat16, 128, true>::multiply(wide, by_rows(0), by_columns(8192, 512));
                }),
                "boxes");
    CHECK_FAULT(with_zeros([](float (&d)[8][4], float (&)[8][4]) {
                    Scores::multiply(d, by_rows(0), by_rows(thread() == 3 ? 8192 : 16384));
                }),
                "different matrices");
    CHECK_FAULT(with_zeros([](float (&d)[8][4], float (&)[8][4]) {
                    Scores::multiply(d, by_rows(0), by_rows(8192));
                    commit_products();
                }),
                "wait_products<0>() is missing");
    CHECK_FAULT(with_zeros([](float (&d)[8][4], float (&)[8][4]) {
                    Scores::multiply(d, by_rows(0), by_rows(8192));
                    wait_products<0>();  // nothing was committed
                }),
                "wait_products<0>() is missing");
    CHECK_FAULT(with_zeros([](float (&d)[8][4], float (&)[8][4]) {
                    Scores::multiply(d, by_rows(0), by_rows(8192));
                    commit_products();
                    if (thread() == 0) store_shared(8192, 0.0f);
                    wait_products<0>();
                }),
                "byte 8192: written while a product of warp 0 may still read it");
    // A warp's own wait is no news of the other warps' products.
    CHECK_FAULT(with_zeros([](float (&d)[8][4], float (&)[8][4]) {
                    Scores::multiply(d, by_rows(0), by_rows(8192));
                    commit_products();
                    wait_products<0>();
                    if (thread() == 0) store_shared(8192, 0.0f);
                }),
                "");
    CHECK_NOTHROW(with_zeros([](float (&d)[8][4], float (&)[8][4]) {
        Scores::multiply(d, by_rows(0), by_rows(8192));
        commit_products();
        wait_products<0>();
        named_barrier_wait(1, 128);
        if (thread() == 0) store_shared(8192, 0.0f);
    }));
    // Each warp's own rows of A are its own.
    CHECK_NOTHROW(with_zeros([](float (&d)[8][4], float (&)[8][4]) {
        Scores::multiply(d, by_rows(0), by_rows(8192));
        commit_products();
        wait_products<0>();
        store_shared(thread() / 32 * 2048 + thread() % 32 * 4, 0.0f);
    }));
}

// --- others --------------------------------------------------------------------------------------

TEST_CASE("executor: registers are given in eights") {
    CHECK_FAULT(run_block(128, 0, [] { increase_registers<20>(); }), "20 registers");
    CHECK_FAULT(run_block(128, 0, [] { decrease_registers<36>(); }), "36 registers");
    CHECK_FAULT(run_block(128, 0, [] { increase_registers<264>(); }), "264 registers");
    CHECK_FAULT(run_block(32, 0,
                          [] {
                              if (thread() == 0) increase_registers<40>();
                          }),
                "divergence in a warp");
}

TEST_CASE("executor: stmatrix puts down what ldmatrix takes up") {
    std::array<std::array<std::uint32_t, 4>, 32> got{};
    run_block(32, 512, [&] {
        const std::uint32_t own = thread() * 4;
        store_matrices(16 * thread(), {own, own + 1, own + 2, own + 3});
        warp_barrier();
        std::uint32_t r[4];
        load_matrices(r, 16 * thread());
        std::copy(r, r + 4, got[thread()].begin());
    });
    for (std::uint32_t lane = 0; lane < 32; ++lane)
        for (std::uint32_t m = 0; m < 4; ++m) CHECK(got[lane][m] == 4 * lane + m);
    CHECK_FAULT(run_block(32, 512, [] { store_matrices(16 * thread() + 8, {0, 0, 0, 0}); }),
                "not aligned");
}

TEST_CASE("executor: one lane, uniform values, atomic counters, the grid and a clock") {
    std::vector<int> tickets(64 * 4, 0);
    int counter = 0;
    std::atomic<int> elected = 0, wrong = 0;
    const GlobalPointer<int> pointer(&counter, 1);
    const Counters counters = executor::run({64}, {64}, 0, [&] {
        const auto before = clock_cycles();
        if (one_lane()) {
            ++elected;
            ++tickets[static_cast<std::size_t>(atomic_add(pointer, 2))];
            global_fence();
        }
        wrong += uniform(static_cast<int>(thread())) != static_cast<int>(thread() / 32 * 32);
        wrong += gridDim.x != 64 || gridDim.y != 1;
        wrong += clock_cycles() <= before;
    });
    CHECK(elected == 2 * 64);
    CHECK(wrong == 0);
    CHECK(counter == 4 * 64);
    for (std::size_t i = 0; i < tickets.size(); ++i) CHECK(tickets[i] == (i % 2 == 0 ? 1 : 0));
    CHECK(counters.global_load_bytes == 2 * 64 * 4);
    CHECK_FAULT(run_block(32, 0, [&] { atomic_add(pointer + 1, 1); }), "elements 1…1");
}

}  // namespace
}  // namespace fa
