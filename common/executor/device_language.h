#pragma once
/// @file
/// The part of CUDA C++ that the kernels of chapters 4 and 5 are written in, spelled for the CPU
/// executor. Its twin for the GPU is common/cuda/device_language.cuh; a kernel includes
/// common/kernel_language.h and cannot tell which it got.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/dtype.h"
#include "common/executor/executor.h"
#include "common/packed.h"

/// Where the kernels are compiled to: here for the executor.
#ifdef FA_BARRIER_DELAYS
#define FA_KERNEL_NAMESPACE on_executor_delayed
#else
#define FA_KERNEL_NAMESPACE on_executor
#endif
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
/// To the executor, nothing.
#define FA_NOINLINE
#define __grid_constant__
#define threadIdx (::fa::executor::position().thread)
#define blockIdx (::fa::executor::position().block)
#define __syncthreads() ::fa::executor::block_barrier(__FILE__, __LINE__)
#define __syncthreads_or(vote) ::fa::executor::block_any(__FILE__, __LINE__, vote)

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

using std::max;
using std::min;

/// Blocks of the launch, in x. (CUDA's own `gridDim` is a parameter's name in headers for the
/// host.)
inline int blocks_in_grid() {
    return static_cast<int>(executor::position().grid_dim.x);
}

/// Where a pointer points to.
enum class Space { global, shared };

/// A pointer that knows the ends of its array, checks every access, and reports it to the executor.
template <class T, Space SPACE>
class CheckedPointer {
  public:
    /// What an element is read as.
    using Value = std::remove_const_t<T>;

    CheckedPointer() = default;
    /// The array data[0 … count − 1].
    CheckedPointer(T* data, std::int64_t count) : at_(data), begin_(data), end_(data + count) {}

    CheckedPointer operator+(std::int64_t n) const {
        CheckedPointer moved = *this;
        moved.at_ += n;
        return moved;
    }
    explicit operator bool() const { return begin_ != nullptr; }

    /// An element: read on conversion, written on assignment.
    class Reference {
      public:
        explicit Reference(CheckedPointer p) : p_(p) {}
        operator Value() const { return p_.template read<Value>(); }
        const Reference& operator=(const Value& value) const {
            p_.template write<Value>(value);
            return *this;
        }
        const Reference& operator=(const Reference& other) const {
            return *this = static_cast<Value>(other);
        }

      private:
        CheckedPointer p_;
    };
    Reference operator[](std::int64_t i) const { return Reference(*this + i); }

    /// Reads a U made of one or several elements, as one instruction.
    template <class U>
    U read() const {
        note(sizeof(U), false);
        U value;
        std::memcpy(static_cast<void*>(&value), at_, sizeof(U));
        return value;
    }
    /// Writes a U made of one or several elements, as one instruction.
    template <class U>
    void write(const U& value) const {
        static_assert(!std::is_const_v<T>);
        note(sizeof(U), true);
        std::memcpy(static_cast<void*>(at_), &value, sizeof(U));
    }

    /// Adds n to the element, as one step. @return its value before
    Value fetch_add(Value n) const {
        note(sizeof(T), false);
        note(sizeof(T), true);
        return std::atomic_ref<T>(*at_).fetch_add(n);
    }

  private:
    void note(std::size_t bytes, bool is_write) const {
        const auto count = static_cast<std::ptrdiff_t>(bytes / sizeof(T));
        if (at_ < begin_ || count > end_ - at_)
            executor::fail(
                fmt::format("{} of elements {}…{} of a {} array of {}", is_write ? "write" : "read",
                            at_ - begin_, at_ - begin_ + count - 1,
                            SPACE == Space::global ? "global" : "shared", end_ - begin_));
        if (reinterpret_cast<std::uintptr_t>(at_) % bytes != 0)
            executor::fail(fmt::format("access of {} bytes, not aligned to its size", bytes));
        if constexpr (SPACE == Space::global)
            executor::note_global(bytes, is_write);
        else
            executor::note_shared(static_cast<std::size_t>(reinterpret_cast<const std::byte*>(at_) -
                                                           executor::shared_base()),
                                  bytes, is_write);
    }

    T *at_ = nullptr, *begin_ = nullptr, *end_ = nullptr;
};

/// A checked, counted pointer into global memory.
template <class T>
using GlobalPointer = CheckedPointer<T, Space::global>;
/// A checked, counted pointer into shared memory.
template <class T>
using SharedPointer = CheckedPointer<T, Space::shared>;

/// `count` elements at `byte_offset` in the block's dynamic shared memory.
template <class T>
SharedPointer<T> shared_array(std::size_t byte_offset, std::int64_t count) {
    if (byte_offset + static_cast<std::size_t>(count) * sizeof(T) > executor::shared_size())
        executor::fail(fmt::format("shared array of {} bytes at {}: the block has {}",
                                   static_cast<std::size_t>(count) * sizeof(T), byte_offset,
                                   executor::shared_size()));
    return {reinterpret_cast<T*>(executor::shared_base() + byte_offset), count};
}

/// N consecutive elements by one load.
template <int N, class T, Space SPACE>
Packed<std::remove_const_t<T>, N> load_packed(CheckedPointer<T, SPACE> from) {
    return from.template read<Packed<std::remove_const_t<T>, N>>();
}

/// N consecutive elements by one store.
template <int N, class T, Space SPACE>
void store_packed(CheckedPointer<T, SPACE> to, const Packed<T, N>& value) {
    to.write(value);
}

/// The value of lane `lane ^ mask` of the warp.
inline float shuffle_xor(float value, unsigned mask) {
    const std::byte* slots = executor::warp_exchange(static_cast<int>(mask), &value, sizeof value);
    float other;
    std::memcpy(&other, slots + executor::SLOT_BYTES * (threadIdx.x % executor::WARP_SIZE ^ mask),
                sizeof other);
    return other;
}

/// __syncwarp().
inline void warp_barrier() {
    executor::warp_exchange(executor::WARP_BARRIER, nullptr, 0);
}

/// The same value.
inline float to_float(float value) {
    return value;
}
/// Widens, exactly.
inline float to_float(BFloat16 value) {
    return static_cast<float>(value);
}
/// Widens, exactly.
inline float to_float(Float16 value) {
    return static_cast<float>(value);
}

/// Rounds to nearest even.
template <class T>
T from_float(float value) {
    return static_cast<T>(value);
}

/// exp; the GPU computes it by its special function unit.
inline float fast_exp(float x) {
    return std::exp(x);
}
/// 2^x; the GPU computes it by its special function unit.
inline float fast_exp2(float x) {
    return std::exp2(x);
}
inline float minus_infinity() {
    return -std::numeric_limits<float>::infinity();
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
