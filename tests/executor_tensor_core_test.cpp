// What the CPU executor knows of tensor cores: ldmatrix, mma.sync, asynchronous copies, votes.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>

#include "common/tensor_core_language.h"
#include "tests/executor_block.h"

namespace fa {
namespace {

using executor::Counters;
using executor::Fault;
using executor::Options;

unsigned thread() {
    return threadIdx.x;
}

TEST_CASE("executor: ldmatrix brings the elements of the PTX manual, plain and transposed") {
    // Matrix m, row r, column c holds 64·m + 8·r + c; rows are 16 bytes apart.
    for (bool transposed : {false, true}) {
        std::array<std::array<std::uint32_t, 4>, 32> got{};
        run_block(32, 512, [&] {
            Packed<std::uint16_t, 8> row;
            for (int c = 0; c < 8; ++c)
                row[c] = static_cast<std::uint16_t>(8 * thread() + static_cast<unsigned>(c));
            store_shared(shared_address(16 * thread()), row);
            warp_barrier();
            std::uint32_t r[4];
            if (transposed)
                load_matrices_transposed(r, shared_address(16 * thread()));
            else
                load_matrices(r, shared_address(16 * thread()));
            std::copy(r, r + 4, got[thread()].begin());
        });
        for (unsigned lane = 0; lane < 32; ++lane)
            for (unsigned m = 0; m < 4; ++m) {
                const unsigned g = lane / 4, q = lane % 4;
                const unsigned first = 64 * m + (transposed ? 8 * (2 * q) + g : 8 * g + 2 * q);
                const unsigned second = first + (transposed ? 8 : 1);
                CHECK(got[lane][m] == (first | second << 16));
            }
    }
}

TEST_CASE("executor: eight rows of ldmatrix in one bank take eight clocks, in eight banks one") {
    for (const auto& pair : {std::pair{128u, 32u}, {16u, 4u}, {144u, 4u}}) {
        const unsigned stride = pair.first, clocks = pair.second;
        const Counters c = run_block(32, 32 * stride,
                                     [&] {
                                         std::uint32_t r[4];
                                         load_matrices(r, shared_address(stride * thread()));
                                     },
                                     {.count_banks = true});
        CHECK(c.shared_instructions == 1);
        CHECK(c.shared_wavefronts == clocks);
        CHECK(c.shared_ideal == 4);
    }
}

/// C for A[r][k] = (r + 3k) mod 5 − 2 and B[k][n] = (2k + n) mod 7 − 3, small enough to be exact.
template <class T>
void check_product() {
    const auto a_at = [](unsigned r, unsigned k) {
        return static_cast<float>((r + 3 * k) % 5) - 2;
    };
    const auto b_at = [](unsigned k, unsigned n) {
        return static_cast<float>((2 * k + n) % 7) - 3;
    };
    std::array<std::array<float, 4>, 32> got{};
    run_block(32, 0, [&] {
        const unsigned g = thread() / 4, q = thread() % 4;
        std::uint32_t a[4], b[2];
        for (unsigned n = 0; n < 4; ++n) {
            const unsigned r = g + n % 2 * 8, k = 2 * q + n / 2 * 8;
            a[n] = pack<T>(a_at(r, k), a_at(r, k + 1));
        }
        for (unsigned n = 0; n < 2; ++n)
            b[n] = pack<T>(b_at(2 * q + 8 * n, g), b_at(2 * q + 8 * n + 1, g));
        float c[4] = {1, 2, 3, 4};
        multiply_add<T>(c, a, b[0], b[1]);
        std::copy(c, c + 4, got[thread()].begin());
    });
    for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned n = 0; n < 4; ++n) {
            const unsigned row = lane / 4 + n / 2 * 8, column = lane % 4 * 2 + n % 2;
            float sum = static_cast<float>(n + 1);
            for (unsigned k = 0; k < 16; ++k) sum += a_at(row, k) * b_at(k, column);
            CHECK(got[lane][n] == sum);
        }
}

TEST_CASE("executor: mma.sync multiplies matrices that are spread over the lanes") {
    check_product<BFloat16>();
    check_product<Float16>();
}

TEST_CASE("executor: an asynchronous copy is not there before it is waited for") {
    alignas(16) static const std::array<float, 4> SOURCE{1, 2, 3, 4};
    const GlobalPointer<const float> from(SOURCE.data(), 4);
    float before = 0, after_other_group = 0, after = 0, zero = 1;
    const auto kernel = [&] {
        if (thread() != 0) return;
        copy_async<float>(shared_address(0), from, 16);
        commit_copies();
        copy_async<float>(shared_address(16), from, 0);
        commit_copies();
        before = load_shared<float>(shared_address(0));
        wait_copies<2>();
        after_other_group = load_shared<float>(shared_address(0));
        wait_copies<1>();
        after = load_shared<float>(shared_address(0));
        wait_copies<0>();
        zero = load_shared<float>(shared_address(16));
    };
    run_block(32, 64, kernel);
    CHECK(std::isnan(before));
    CHECK(std::isnan(after_other_group));
    CHECK(after == 1);
    CHECK(zero == 0);
    run_block(32, 64, kernel, {.copies_arrive_at_once = true});
    CHECK(before == 1);
}

TEST_CASE("executor: what goes wrong with asynchronous copies is caught") {
    alignas(16) static const std::array<float, 4> SOURCE{};
    const GlobalPointer<const float> from(SOURCE.data(), 4);
    const auto fault = [&](const std::function<void()>& kernel, const char* text) {
        CHECK_THROWS_WITH_AS(run_block(32, 64, kernel), doctest::Contains(text), Fault);
    };
    // Waited for, but no barrier before another thread reads.
    fault(
        [&] {
            if (thread() == 0) {
                copy_async<float>(shared_address(0), from, 16);
                commit_copies();
                wait_copies<0>();
            } else if (thread() == 1) {
                load_shared<float>(shared_address(0));
            }
        },
        "race");
    // Into a place that another thread has read since the last barrier.
    fault(
        [&] {
            if (thread() == 1) load_shared<float>(shared_address(0));
            if (thread() == 31) copy_async<float>(shared_address(0), from, 16);
        },
        "race");
    fault([&] { copy_async<float>(shared_address(64), from, 16); }, "shared access");
    fault([&] { copy_async<float>(shared_address(8), from, 16); }, "not aligned");
    fault([&] { copy_async<float>(shared_address(0), from + 4, 16); }, "read of elements");
    fault([&] { copy_async<float>(shared_address(0), from, 8); }, "8 bytes");
}

TEST_CASE("executor: votes of a warp and of a block") {
    std::array<bool, 64> warp{}, block{}, none{};
    run_block(64, 0, [&] {
        warp[thread()] = warp_any(thread() == 40);
        block[thread()] = __syncthreads_or(thread() == 40);
        none[thread()] = __syncthreads_or(false);
    });
    for (unsigned t = 0; t < 64; ++t) {
        CHECK(warp[t] == (t >= 32));
        CHECK(block[t]);
        CHECK_FALSE(none[t]);
    }
}

}  // namespace
}  // namespace fa
