#pragma once
/// @file
/// Measures what really is allocated on the heap. A program that links `fa_memory_meter` and uses a
/// MemoryMeter has every call of malloc and its relatives counted, operator new included, whoever
/// makes it: our code, header libraries, the C++, OpenMP and C libraries. memory_meter.cpp tells
/// how.

#include <cstddef>
#include <cstdint>

namespace fa {

/// Peak of live heap bytes above the level at construction. Meters may nest and follow one another
/// in any order; each is right for its own span of time. Counts all threads.
///
/// @code
///   MemoryMeter meter;
///   AlignedBuffer workspace(bytes);
///   attention(...);
///   meter.peak();   // scratch: the outputs were allocated before
/// @endcode
class MemoryMeter {
  public:
    MemoryMeter();
    ~MemoryMeter();
    MemoryMeter(const MemoryMeter&) = delete;
    MemoryMeter& operator=(const MemoryMeter&) = delete;

    /// Most bytes that were live at one moment since construction, above those live then. Never
    /// negative.
    std::size_t peak() const;
    /// Bytes live now above those live at construction; negative if more was freed than allocated.
    std::ptrdiff_t current() const;
    /// Number of allocations since construction, in all threads. A realloc counts as one.
    std::uint64_t allocations() const;

    /// False where nothing is counted: with a C library other than glibc and no address sanitizer,
    /// or under a tool that brings its own malloc. A program must then not show zeros as measured.
    static bool active();

  private:
    friend class HeapLedger;
    // The meter is its own node in the list of meters: it allocates nothing, so that an outer meter
    // does not see an inner one.
    std::ptrdiff_t base_ = 0;  // live bytes at construction
    std::ptrdiff_t peak_ = 0;  // most live bytes since
    std::uint64_t first_allocation_ = 0;
    MemoryMeter* next_ = nullptr;
};

}  // namespace fa
