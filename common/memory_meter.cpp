/// @file
/// How the meter sees the heap. A program that links this file gets its malloc, free and the rest
/// of the family from here: each asks the C library for the block (`__libc_malloc` …) and counts
/// it. The dynamic linker looks into the program first, so that calls from shared libraries land
/// here as well: operator new in libstdc++, team structures of the OpenMP runtime, getline() in the
/// C library.
///
/// Why not the linker's --wrap, nor a replaced operator new? Both see only part of the calls. A
/// std::string grown inside libstdc++.so and freed by our inlined destructor, or a buffer that libc
/// allocates and we free, would then be counted on one side only, and the balance would drift. Here
/// every block is counted at both ends.
///
/// The address and thread sanitizers bring their own malloc, which must not be replaced; they offer
/// hooks instead, and those see all calls too.
///
/// Counted is what the allocator sets aside (malloc_usable_size): the size asked for, rounded up by
/// a few bytes, by up to a page for large blocks. It is the one size known both when a block comes
/// and when it goes. Not counted: memory mapped directly, thread stacks, static arrays.

#include "common/memory_meter.h"

#include <malloc.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <utility>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FA_SANITIZER_MALLOC
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FA_SANITIZER_MALLOC
#endif
#endif
#ifdef FA_SANITIZER_MALLOC
// From <sanitizer/allocator_interface.h>, which comes with Clang and not with GCC.
extern "C" std::size_t __sanitizer_get_allocated_size(const volatile void* block);
#endif

namespace fa {

/// The books: bytes live, and the meters that watch them. It is used inside malloc, so that it
/// cannot allocate, and before main(), so that all of it is constant-initialised.
class HeapLedger {
  public:
    /// Enters an event: `bytes` more (or fewer) are live, by so many allocations.
    static void enter(std::ptrdiff_t bytes, std::uint64_t allocations) {
        const std::scoped_lock lock(mutex);
        live += bytes;
        count += allocations;
        for (MemoryMeter* meter = meters; meter != nullptr; meter = meter->next_)
            meter->peak_ = std::max(meter->peak_, live);
    }

    // One lock for level, peaks and list. With atomics alone, a peak that was reached just before a
    // meter's construction could still be credited to it.
    static constinit std::mutex mutex;
    static constinit std::ptrdiff_t live;
    static constinit std::uint64_t count;
    static constinit MemoryMeter* meters;  ///< all meters alive, linked through next_
};

constinit std::mutex HeapLedger::mutex;
constinit std::ptrdiff_t HeapLedger::live = 0;
constinit std::uint64_t HeapLedger::count = 0;
constinit MemoryMeter* HeapLedger::meters = nullptr;

MemoryMeter::MemoryMeter() {
    const std::scoped_lock lock(HeapLedger::mutex);
    base_ = peak_ = HeapLedger::live;
    first_allocation_ = HeapLedger::count;
    next_ = std::exchange(HeapLedger::meters, this);
}

MemoryMeter::~MemoryMeter() {
    const std::scoped_lock lock(HeapLedger::mutex);
    MemoryMeter** link = &HeapLedger::meters;
    while (*link != this) link = &(*link)->next_;
    *link = next_;
}

std::size_t MemoryMeter::peak() const {
    const std::scoped_lock lock(HeapLedger::mutex);
    return static_cast<std::size_t>(peak_ - base_);
}

std::ptrdiff_t MemoryMeter::current() const {
    const std::scoped_lock lock(HeapLedger::mutex);
    return HeapLedger::live - base_;
}

std::uint64_t MemoryMeter::allocations() const {
    const std::scoped_lock lock(HeapLedger::mutex);
    return HeapLedger::count - first_allocation_;
}

bool MemoryMeter::active() {
    // Found out by trying: a debugger such as valgrind may have put its own malloc before ours. The
    // volatile pointer keeps the compiler from dropping the pair of calls.
    static const bool found = [] {
        const MemoryMeter meter;
        void* volatile block = std::malloc(1);
        std::free(block);
        return meter.allocations() > 0;
    }();
    return found;
}

namespace {

std::ptrdiff_t size_of_block(void* block) {
#ifdef FA_SANITIZER_MALLOC
    return static_cast<std::ptrdiff_t>(__sanitizer_get_allocated_size(block));
#else
    return static_cast<std::ptrdiff_t>(malloc_usable_size(block));  // 0 for null
#endif
}

/// Counts a new block and passes it on.
[[maybe_unused]] void* counted(void* block) {
    if (block != nullptr) HeapLedger::enter(size_of_block(block), 1);
    return block;
}

}  // namespace
}  // namespace fa

#ifdef FA_SANITIZER_MALLOC

// Called by the sanitizer's allocator after each allocation and before each release.
extern "C" [[gnu::visibility("default")]] void __sanitizer_malloc_hook(const volatile void* block,
                                                                       std::size_t) {
    fa::counted(const_cast<void*>(block));
}

extern "C" [[gnu::visibility("default")]] void __sanitizer_free_hook(const volatile void* block) {
    if (block != nullptr) fa::HeapLedger::enter(-fa::size_of_block(const_cast<void*>(block)), 0);
}

#elif defined(__GLIBC__)

// The allocator itself, by the names under which the C library offers it to replacements.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* __libc_valloc(std::size_t);
void* __libc_pvalloc(std::size_t);
void __libc_free(void*);
}

#define FA_REPLACES extern "C" [[gnu::visibility("default")]]

FA_REPLACES void* malloc(std::size_t size) noexcept {
    return fa::counted(__libc_malloc(size));
}

FA_REPLACES void* calloc(std::size_t count, std::size_t size) noexcept {
    return fa::counted(__libc_calloc(count, size));
}

FA_REPLACES void* memalign(std::size_t alignment, std::size_t size) noexcept {
    return fa::counted(__libc_memalign(alignment, size));
}

FA_REPLACES void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
    return fa::counted(__libc_memalign(alignment, size));
}

FA_REPLACES void* valloc(std::size_t size) noexcept {
    return fa::counted(__libc_valloc(size));
}

FA_REPLACES void* pvalloc(std::size_t size) noexcept {
    return fa::counted(__libc_pvalloc(size));
}

FA_REPLACES int posix_memalign(void** block, std::size_t alignment, std::size_t size) noexcept {
    if (alignment < sizeof(void*) || !std::has_single_bit(alignment)) return EINVAL;
    const int errno_before = errno;  // the standard: errors are returned, errno is left alone
    void* const result = fa::counted(__libc_memalign(alignment, size));
    errno = errno_before;
    if (result == nullptr) return ENOMEM;
    *block = result;
    return 0;
}

FA_REPLACES void* realloc(void* block, std::size_t size) noexcept {
    // From here on the old block belongs to the C library, its size cannot be asked for later.
    // While a block moves, old and new exist together for a moment; the books show the new one
    // only.
    const std::ptrdiff_t old_size = fa::size_of_block(block);
    void* const result = __libc_realloc(block, size);
    if (result != nullptr)
        fa::HeapLedger::enter(fa::size_of_block(result) - old_size, 1);
    else if (size == 0)
        fa::HeapLedger::enter(-old_size, 0);  // glibc: a size of 0 frees
    return result;
}

FA_REPLACES void free(void* block) noexcept {
    if (block == nullptr) return;
    fa::HeapLedger::enter(-fa::size_of_block(block), 0);
    __libc_free(block);
}

#endif
