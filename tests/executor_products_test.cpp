// The CPU executor's products by warpgroups (wgmma): layouts, groups, and what goes wrong.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "tests/executor_hopper.h"

namespace fa {
namespace {

/// Small multiples of 1/8, exact in both types.
float a_at(unsigned row, unsigned k) {
    return static_cast<float>((5 * row + 3 * k) % 17) / 8 - 1;
}
float b_at(unsigned k, unsigned n) {
    return static_cast<float>((7 * k + 11 * n) % 19) / 8 - 1;
}

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
                store_shared(
                    a0 + in_boxes(row, k, A_BOX),
                    pack<T>(a_at(row + 64 * warpgroup, k), a_at(row + 64 * warpgroup, k + 1)));
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
                const Matrix a = by_rows(a0) + step / 4 * (A_BOX / 16) + step % 4 * DEEPER_BY_ROWS;
                const Matrix b =
                    B_IS_ROWS ? by_columns(b0, B_BOX) + step * DEEPER_BY_COLUMNS
                              : by_rows(b0) + step / 4 * (B_BOX / 16) + step % 4 * DEEPER_BY_ROWS;
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
            check_products<T, 128, false>(a_in_registers, add);
            check_products<T, 64, true>(a_in_registers, add);
            check_products<T, 128, true>(a_in_registers, add);
        }
}

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
    with_zeros([](float(&d)[8][4], float(&other)[8][4]) {
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
    with_zeros([](float(&d)[8][4], float(&)[8][4]) {
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
    const auto multiply = [](SharedAddress a, SharedAddress b, Matrix deeper = 0) {
        with_zeros([&](float(&d)[8][4], float(&)[8][4]) {
            Scores::multiply(d, by_rows(a), by_rows(b) + deeper);
        });
    };
    CHECK_FAULT(multiply(128, 8192), "first row of eight");
    CHECK_FAULT(multiply(0, 8192 + 16), "16 columns");
    CHECK_FAULT(multiply(0, 8192, 4 * DEEPER_BY_ROWS), "first row of eight");
    CHECK_FAULT(multiply(0, 31 * 1024), "of 32768");
    CHECK_FAULT(with_zeros([](float(&d)[8][4], float(&)[8][4]) {
                    Sum::multiply(d, by_rows(0), by_columns(8192 + 512, 8192));
                }),
                "by columns");
    CHECK_FAULT(with_zeros([](float(&)[8][4], float(&)[8][4]) {
                    float wide[16][4];
                    Product<BFloat16, 128, true>::multiply(wide, by_rows(0), by_columns(8192, 512));
                }),
                "boxes");
    CHECK_FAULT(with_zeros([](float(&d)[8][4], float(&)[8][4]) {
                    Scores::multiply(d, by_rows(0), by_rows(thread() == 3 ? 8192 : 16384));
                }),
                "different matrices");
    CHECK_FAULT(with_zeros([](float(&d)[8][4], float(&)[8][4]) {
                    Scores::multiply(d, by_rows(0), by_rows(8192));
                    commit_products();
                }),
                "wait_products<0>() is missing");
    CHECK_FAULT(with_zeros([](float(&d)[8][4], float(&)[8][4]) {
                    Scores::multiply(d, by_rows(0), by_rows(8192));
                    wait_products<0>();  // nothing was committed
                }),
                "wait_products<0>() is missing");
    CHECK_FAULT(with_zeros([](float(&d)[8][4], float(&)[8][4]) {
                    Scores::multiply(d, by_rows(0), by_rows(8192));
                    commit_products();
                    if (thread() == 0) store_shared(8192, 0.0f);
                    wait_products<0>();
                }),
                "byte 8192: written while a product of warp 0 may still read it");
    // A warp's own wait is no news of the other warps' products.
    CHECK_FAULT(with_zeros([](float(&d)[8][4], float(&)[8][4]) {
                    Scores::multiply(d, by_rows(0), by_rows(8192));
                    commit_products();
                    wait_products<0>();
                    if (thread() == 0) store_shared(8192, 0.0f);
                }),
                "");
    CHECK_NOTHROW(with_zeros([](float(&d)[8][4], float(&)[8][4]) {
        Scores::multiply(d, by_rows(0), by_rows(8192));
        commit_products();
        wait_products<0>();
        named_barrier_wait(1, 128);
        if (thread() == 0) store_shared(8192, 0.0f);
    }));
    // Each warp's own rows of A are its own.
    CHECK_NOTHROW(with_zeros([](float(&d)[8][4], float(&)[8][4]) {
        Scores::multiply(d, by_rows(0), by_rows(8192));
        commit_products();
        wait_products<0>();
        store_shared(thread() / 32 * 2048 + thread() % 32 * 4, 0.0f);
    }));
}

}  // namespace
}  // namespace fa
