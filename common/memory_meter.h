#pragma once
/// @file
/// Measures what really is allocated on the heap, by standing in front of malloc and operator new in
/// programs that link `fa_memory_meter` (linker option --wrap; see memory_meter.cpp). Counted are
/// allocations of our own object code, Eigen's and other header libraries' included.

#include <cstddef>
#include <cstdint>

namespace fa {

/// Peak of live heap bytes above the level at construction. Meters may nest and follow one another in
/// any order; each is right for its own span of time. Counts all threads.
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
    /// Number of allocations since construction.
    std::uint64_t allocations() const;

    /// False in a program that was not linked with the wrapping options: then nothing is counted.
    static bool active();

  private:
    struct State;
    State* state_;
};

}  // namespace fa
