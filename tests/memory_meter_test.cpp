/// @file
/// The memory meter sees every allocation, whoever makes it, and each meter is right for its own
/// span. Figures are read into locals first: a CHECK may itself allocate.

#include "common/memory_meter.h"

#include <doctest/doctest.h>
#include <malloc.h>
#include <stdio.h>  // getline, POSIX

#include <Eigen/Core>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "common/aligned_buffer.h"
#include "common/tensor.h"

using fa::MemoryMeter;

namespace {

constexpr std::size_t MIB = std::size_t{1} << 20;

// What an allocator may set aside beyond the size asked for: up to a page for a large block.
constexpr std::size_t SLACK = 8192;

bool about(std::ptrdiff_t measured, std::size_t expected) {
    return measured >= static_cast<std::ptrdiff_t>(expected) &&
           measured <= static_cast<std::ptrdiff_t>(expected + SLACK);
}
bool about(std::size_t measured, std::size_t expected) {
    return about(static_cast<std::ptrdiff_t>(measured), expected);
}

/// Keeps the compiler from dropping an allocation whose block is never looked at.
template <class T>
T* seen(T* block) {
    asm volatile("" : : "g"(block) : "memory");
    return block;
}

/// What one pair of allocation and release does to the books.
struct Pair {
    std::ptrdiff_t live, after;
    std::size_t peak;
    std::uint64_t allocations;
};

template <class Allocate, class Release>
Pair measure(Allocate allocate, Release release) {
    const MemoryMeter meter;
    auto* block = seen(allocate());
    const std::ptrdiff_t live = meter.current();
    const std::uint64_t allocations = meter.allocations();
    release(block);
    return {live, meter.current(), meter.peak(), allocations};
}

void check_pair(const char* what, const Pair& pair, std::size_t size) {
    CAPTURE(what);
    CHECK(about(pair.live, size));
    CHECK(about(pair.peak, size));
    CHECK(pair.after == 0);
    CHECK(pair.allocations == 1);
}

}  // namespace

TEST_CASE("the meter is active") {
    CHECK(MemoryMeter::active());
}

TEST_CASE("the C family is counted") {
    for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, MIB, 100 * MIB}) {
        CAPTURE(size);
        check_pair("malloc", measure([&] { return std::malloc(size); }, std::free), size);
        check_pair("calloc", measure([&] { return std::calloc(size, 2); }, std::free), 2 * size);
        check_pair(
            "aligned_alloc",
            measure([&] { return std::aligned_alloc(64, (size + 63) / 64 * 64); }, std::free),
            (size + 63) / 64 * 64);
        check_pair("memalign", measure([&] { return memalign(4096, size); }, std::free), size);
        check_pair("valloc", measure([&] { return valloc(size); }, std::free), size);
        check_pair("realloc of null",
                   measure([&] { return std::realloc(nullptr, size); }, std::free), size);
        check_pair("posix_memalign",
                   measure(
                       [&] {
                           void* block = nullptr;
                           CHECK(posix_memalign(&block, 256, size) == 0);
                           return block;
                       },
                       std::free),
                   size);
    }
    const Pair null = measure([] { return static_cast<void*>(nullptr); }, std::free);
    CHECK(null.live == 0);
    CHECK(null.after == 0);
    CHECK(null.allocations == 0);
}

TEST_CASE("aligned blocks are aligned") {
    for (const std::size_t alignment : {std::size_t{16}, std::size_t{64}, std::size_t{4096}}) {
        void* block = nullptr;
        REQUIRE(posix_memalign(&block, alignment, 100) == 0);
        CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
        std::free(block);
        block = std::aligned_alloc(alignment, alignment);
        CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
        std::free(block);
    }
}

TEST_CASE("every operator new and delete is counted") {
    const std::size_t size = 10000;
    constexpr std::align_val_t ALIGNED{128};
    const auto plain = [](void* b) { ::operator delete(b); };
    const auto array = [](void* b) { ::operator delete[](b); };
    const auto nothrow = [](void* b) { ::operator delete(b, std::nothrow); };
    const auto aligned = [&](void* b) { ::operator delete(b, ALIGNED); };
    const auto aligned_array = [&](void* b) { ::operator delete[](b, ALIGNED); };
    const auto aligned_nothrow = [&](void* b) { ::operator delete(b, ALIGNED, std::nothrow); };

    check_pair("new", measure([&] { return ::operator new(size); }, plain), size);
    check_pair("new[]", measure([&] { return ::operator new[](size); }, array), size);
    check_pair("nothrow", measure([&] { return ::operator new(size, std::nothrow); }, nothrow),
               size);
    check_pair("nothrow[]", measure([&] { return ::operator new[](size, std::nothrow); }, array),
               size);
    check_pair("aligned", measure([&] { return ::operator new(size, ALIGNED); }, aligned), size);
    check_pair("aligned[]", measure([&] { return ::operator new[](size, ALIGNED); }, aligned_array),
               size);
    check_pair(
        "aligned, nothrow",
        measure([&] { return ::operator new(size, ALIGNED, std::nothrow); }, aligned_nothrow),
        size);

#ifdef __cpp_sized_deallocation  // GCC; Clang 14 on demand only
    const auto sized = [&](void* b) { ::operator delete(b, size); };
    const auto sized_array = [&](void* b) { ::operator delete[](b, size); };
    const auto aligned_sized = [&](void* b) { ::operator delete(b, size, ALIGNED); };
    check_pair("sized", measure([&] { return ::operator new(size); }, sized), size);
    check_pair("sized[]", measure([&] { return ::operator new[](size); }, sized_array), size);
    check_pair("aligned, sized",
               measure([&] { return ::operator new(size, ALIGNED); }, aligned_sized), size);
#endif
}

TEST_CASE("realloc moves the books from the old size to the new") {
    const MemoryMeter meter;
    void* block = seen(std::malloc(1000));
    block = seen(std::realloc(block, 10 * MIB));
    const std::ptrdiff_t grown = meter.current();
    block = seen(std::realloc(block, MIB));
    const std::ptrdiff_t shrunk = meter.current();
    const std::size_t peak = meter.peak();
    std::free(block);
    const std::ptrdiff_t after = meter.current();
    const std::uint64_t allocations = meter.allocations();
    CHECK(about(grown, 10 * MIB));
    CHECK(about(shrunk, MIB));
    CHECK(peak >= 10 * MIB);
    CHECK(after == 0);
    CHECK(allocations >= 3);
}

#ifndef FA_SANITIZED  // a sanitizer's allocator ends the program where malloc would fail
TEST_CASE("a failed allocation counts nothing and leaves the block alone") {
    // Volatile, so that the compiler neither warns of the size nor folds the call.
    volatile std::size_t too_much = std::size_t{1} << 62;
    volatile std::size_t bad_alignment = 24;
    void* const block = seen(std::malloc(1000));
    const MemoryMeter meter;
    void* const failed = std::malloc(too_much);
    void* volatile unlinked = block;  // GCC would warn of the use of `block` after realloc
    void* const failed_growth = std::realloc(unlinked, too_much);
    void* aligned = nullptr;
    const int aligned_error = posix_memalign(&aligned, 64, too_much);
    const int alignment_error = posix_memalign(&aligned, bad_alignment, 64);
    bool thrown = false;
    try {
        ::operator delete(::operator new(too_much));
    } catch (const std::bad_alloc&) {
        thrown = true;
    }
    const std::ptrdiff_t live = meter.current();
    CHECK(failed == nullptr);
    CHECK(failed_growth == nullptr);
    CHECK(aligned == nullptr);
    CHECK(aligned_error == ENOMEM);
    CHECK(alignment_error == EINVAL);
    CHECK(thrown);
    // The exception itself lives on the heap only while it is caught.
    CHECK(live == 0);
    std::free(block);
    const std::ptrdiff_t after = meter.current();
    CHECK(after <= -1000);
}

#endif

TEST_CASE("a block made on one side of a library's border and freed on the other balances") {
    const MemoryMeter meter;
    {  // allocated in libstdc++.so, freed by inlined code, and the reverse
        std::ostringstream stream;
        for (int i = 0; i < 20000; ++i) stream << i << ' ';
        std::string text = stream.str();
        text += text;
        std::string moved = std::move(text);
        moved.reserve(MIB);
        seen(moved.data());
    }
    {  // allocated in the C library, freed here
        char* const copy = seen(strdup("a string long enough to need a block of its own"));
        std::free(copy);
        std::FILE* const file = std::tmpfile();
        REQUIRE(file != nullptr);
        std::fputs("one line\n", file);
        std::rewind(file);
        char* line = nullptr;
        std::size_t capacity = 0;
        const auto length = getline(&line, &capacity, file);
        std::free(seen(line));
        std::fclose(file);
        CHECK(length == 9);
    }
    const std::ptrdiff_t after = meter.current();
    const std::size_t peak = meter.peak();
    CHECK(after == 0);
    CHECK(peak >= MIB);
}

TEST_CASE("tensors, aligned buffers and Eigen's matrices weigh what they hold") {
    const auto weight = [](auto make) {
        const MemoryMeter meter;
        const auto object = make();
        seen(object.data());
        return meter.peak();
    };
    CHECK(about(weight([] { return fa::Tensor<float>({2, 3, 500, 64}); }), 2 * 3 * 500 * 64 * 4));
    CHECK(about(weight([] { return fa::Tensor<fa::BFloat16>({1, 1, 1000, 64}); }), 1000 * 64 * 2));
    CHECK(about(weight([] { return Eigen::MatrixXf(1000, 300); }), 1000 * 300 * 4));
    CHECK(about(weight([] { return std::vector<double>(12345); }), 12345 * 8));
    const MemoryMeter meter;
    const fa::AlignedBuffer buffer(3 * MIB);
    CHECK(about(meter.peak(), 3 * MIB));
}

TEST_CASE("peak is the most at one moment, not the sum") {
    const MemoryMeter meter;
    for (int i = 0; i < 10; ++i) {
        std::free(seen(std::malloc(MIB)));
        void* const a = seen(std::malloc(2 * MIB));
        void* const b = seen(std::malloc(3 * MIB));
        std::free(a);
        std::free(b);
    }
    const std::size_t peak = meter.peak();
    const std::ptrdiff_t after = meter.current();
    const std::uint64_t allocations = meter.allocations();
    CHECK(about(peak, 5 * MIB));
    CHECK(after == 0);
    CHECK(allocations == 30);
}

TEST_CASE("freeing older blocks makes current negative and leaves the peak at zero") {
    void* const old = seen(std::malloc(4 * MIB));
    const MemoryMeter meter;
    std::free(old);
    const std::ptrdiff_t freed = meter.current();
    void* const fresh = seen(std::malloc(MIB));
    const std::size_t peak = meter.peak();
    std::free(fresh);
    CHECK(freed <= -static_cast<std::ptrdiff_t>(4 * MIB));
    CHECK(peak == 0);  // never above the level at construction
}

TEST_CASE("meters follow one another without a trace of the one before") {
    const auto peak_of = [](std::size_t size) {
        const MemoryMeter meter;
        std::free(seen(std::malloc(size)));
        return meter.peak();
    };
    const std::size_t first = peak_of(16 * MIB), second = peak_of(MIB), third = peak_of(4 * MIB);
    CHECK(about(first, 16 * MIB));
    CHECK(about(second, MIB));
    CHECK(about(third, 4 * MIB));
}

TEST_CASE("meters nest, and end in any order") {
    std::optional<MemoryMeter> outer, inner, late;
    outer.emplace();
    void* const a = seen(std::malloc(2 * MIB));
    inner.emplace();
    void* const b = seen(std::malloc(3 * MIB));
    std::free(b);
    late.emplace();
    const std::size_t outer_peak = outer->peak();
    const std::size_t inner_peak = inner->peak();
    outer.reset();  // the oldest goes first
    void* const c = seen(std::malloc(MIB));
    const std::size_t inner_peak_after = inner->peak(), late_peak = late->peak();
    inner.reset();
    std::free(c);
    std::free(a);
    const std::ptrdiff_t late_current = late->current();
    const std::size_t late_peak_after = late->peak();
    CHECK(about(outer_peak, 5 * MIB));
    CHECK(about(inner_peak, 3 * MIB));
    CHECK(about(inner_peak_after, 3 * MIB));
    CHECK(about(late_peak, MIB));
    CHECK(late_peak_after == late_peak);
    CHECK(about(-late_current, 2 * MIB));
}

TEST_CASE("threads: every block is counted once, wherever it is freed") {
    constexpr int THREADS = 4, BLOCKS = 2000;
    std::array<std::array<void*, BLOCKS>, THREADS> blocks{};
    const auto in_threads = [&](auto work) {
        std::vector<std::jthread> threads;
        for (std::size_t t = 0; t < THREADS; ++t) threads.emplace_back([=] { work(t); });
    };
    // The first threads leave thread-local structures of the C library behind; let them come first.
    in_threads([](std::size_t) { std::free(seen(std::malloc(1))); });

    const MemoryMeter meter;
    in_threads([&](std::size_t t) {
        for (void*& block : blocks[t]) block = seen(std::malloc(1000));
    });
    const std::ptrdiff_t filled = meter.current();
    const std::uint64_t allocations = meter.allocations();
    in_threads([&](std::size_t t) {  // each frees its neighbour's
        for (void* block : blocks[(t + 1) % THREADS]) std::free(block);
    });
    const std::ptrdiff_t after = meter.current();
    const std::size_t peak = meter.peak();
    CHECK(filled >= THREADS * BLOCKS * 1000);
    CHECK(filled <= THREADS * BLOCKS * 1000 + THREADS * BLOCKS * 32 + 4096);
    CHECK(allocations >= THREADS * BLOCKS);
    CHECK(allocations <= THREADS * BLOCKS + 64);
    CHECK(peak >= static_cast<std::size_t>(filled));
    CHECK(std::abs(after) <= 4096);  // thread-local remains at most; the blocks are 8 MB
}

TEST_CASE("a meter that starts while others allocate is not credited with what came before it") {
    // A thread holds 1 MiB half of the time. Whenever a meter starts, it can see that block come,
    // at most once at a time; a peak of 2 MiB would be a mix of two moments.
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> rounds{0};
    std::jthread worker([&] {
        while (!stop) {
            std::free(seen(std::malloc(MIB)));
            ++rounds;
        }
    });
    std::size_t largest = 0, seen_blocks = 0;
    std::ptrdiff_t lowest = 0;
    for (int i = 0; i < 500; ++i) {
        const MemoryMeter meter;
        const std::uint64_t round = rounds;
        while (rounds < round + 2) std::this_thread::yield();
        const std::size_t peak = meter.peak();
        largest = std::max(largest, peak);
        lowest = std::min(lowest, meter.current());
        seen_blocks += peak >= MIB;
    }
    stop = true;
    worker.join();
    CHECK(largest <= MIB + SLACK);
    CHECK(lowest >= -static_cast<std::ptrdiff_t>(MIB + SLACK));
    CHECK(seen_blocks > 0);
}
