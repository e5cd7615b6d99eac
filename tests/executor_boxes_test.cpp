// The CPU executor's copies of boxes (TMA): where elements land, what lies outside, and what goes
// wrong.

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <functional>

#include "tests/executor_hopper.h"

namespace fa {
namespace {

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
    TensorMap map(int rows, std::int64_t channels = CHANNELS) {
        return make_executor_map(elements.data(), {channels, TOKENS, HEADS, BATCH},
                                 {TOKEN, HEAD, ENTRY}, rows);
    }
};

/// Element (row, column) of the box that store_ramp() stores.
int ramp(int row, int column) {
    return row * 64 + (column & ~1) + (column % 2 ? 0x9001 : 0x8000);
}
/// Stores a box of 8 rows.
/// @param at channel, token, head, batch
Counters store_ramp(const TensorMap& map, const std::array<int, 4>& at) {
    return run_block(32, 1024, [&] {
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
}
/// Compares a tensor after store_ramp(), gaps included, with what it was.
/// @param channels how many of every row a store may write
/// @return how many elements are wrong, and how many bytes should have been stored
std::array<std::uint64_t, 2> wrong_after_ramp(const Tensor4& tensor, const std::array<int, 4>& at,
                                              int channels) {
    const Tensor4 before;
    std::uint64_t wrong = 0, bytes = 0;
    for (int b = 0; b < 2; ++b)
        for (int h = 0; h < 4; ++h)
            for (int t = 0; t < 6; ++t)
                for (int c = 0; c < 88; ++c) {
                    const auto i = static_cast<std::size_t>(b * Tensor4::ENTRY + h * Tensor4::HEAD +
                                                            t * Tensor4::TOKEN + c);
                    const int row = t - at[1], column = c - at[0];
                    const bool stored = b == at[3] && h == at[2] && h < 3 && t < 5 &&
                                        c < channels && row >= 0 && row < 8 && column >= 0 &&
                                        column < 64;
                    wrong +=
                        tensor.elements[i] != (stored ? ramp(row, column) : before.elements[i]);
                    bytes += stored ? 2 : 0;
                }
    return {wrong, bytes};
}

TEST_CASE("executor: a box is loaded swizzled, and what lies outside the tensor is zero") {
    Tensor4 tensor;
    for (bool at_once : {false, true})
        for (const auto& at : {std::array{0, 0, 0, 0},
                               {16, 2, 1, 1},
                               {64, 0, 2, 1},
                               {-8, -3, 0, 0},
                               {-64, 0, 0, 0},
                               {80, 0, 0, 0},
                               {0, 5, 0, 0},
                               {0, -8, 0, 0},
                               {0, 0, -1, 0},
                               {0, 0, 3, 0},
                               {0, 0, 0, 2},
                               {0, 0, 0, -1}}) {
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
                            const auto expected =
                                tensor.at(at[3], at[2], at[1] + row, at[0] + column);
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
    for (const auto& at : {std::array{0, 0, 0, 0},
                           {16, 2, 1, 1},
                           {64, 0, 2, 1},
                           {-8, -3, 0, 0},
                           {-64, 0, 0, 0},
                           {0, 5, 0, 0},
                           {0, 0, 3, 0},
                           {0, 0, 0, -1}}) {
        Tensor4 tensor;
        const Counters counters = store_ramp(tensor.map(8), at);
        const auto [wrong, bytes] = wrong_after_ramp(tensor, at, 80);
        CHECK(wrong == 0);
        CHECK(counters.global_store_bytes == bytes);
    }
}

// Measured on an H200: O of 1, 2, 63, 100 channels was overwritten right behind the last of them.
TEST_CASE("executor: a stored box ends with a unit of 16 bytes, not with the last channel") {
    struct Case {
        int channels, written;
    };
    for (const Case& c :
         {Case{1, 8}, {2, 8}, {8, 8}, {9, 16}, {63, 64}, {64, 64}, {65, 72}, {71, 72}, {73, 80}})
        for (const auto& at : {std::array{0, 0, 0, 0}, {64, 0, 2, 0}, {-8, -3, 1, 0}}) {
            CAPTURE(c.channels);
            CAPTURE(at[0]);
            Tensor4 tensor;
            const Counters counters = store_ramp(tensor.map(8, c.channels), at);
            const auto [wrong, bytes] = wrong_after_ramp(tensor, at, c.written);
            CHECK(wrong == 0);
            CHECK(counters.global_store_bytes == bytes);
        }
}

TEST_CASE("executor: a box is not stored beyond the end of its tensor's memory") {
    Tensor4 tensor;
    const std::array end{0, 0, 2, 1};
    CHECK_NOTHROW(store_ramp(tensor.map(8, 64), end));
    CHECK_FAULT(store_ramp(tensor.map(8, 63), end),
                "write of element 3583 of a global array of 3583");
    CHECK_FAULT(store_ramp(tensor.map(8, 57), end),
                "write of element 3583 of a global array of 3577");
    CHECK_NOTHROW(store_ramp(tensor.map(8, 63), {0, -4, 2, 1}));  // up to the last row but one
    CHECK_NOTHROW(store_ramp(tensor.map(8, 63), {64, 0, 2, 1}));  // nothing
}

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
            with_barrier(64,
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

}  // namespace
}  // namespace fa
