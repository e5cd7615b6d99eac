#pragma once
/// @file
/// Host memory for workspaces: 64-byte aligned, freed on scope exit, content left as it comes.

#include <cstddef>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace fa {

/// Owns `size` bytes aligned to a cache line (and to the widest vector register).
class AlignedBuffer {
  public:
    static constexpr std::size_t ALIGNMENT = 64;

    AlignedBuffer() = default;
    /// @throws std::bad_alloc if the memory is not to be had
    explicit AlignedBuffer(std::size_t size)
        : data_(size == 0
                    ? nullptr
                    : static_cast<std::byte*>(::operator new (size, std::align_val_t{ALIGNMENT}))),
          size_(size) {}
    ~AlignedBuffer() {
        if (data_) ::operator delete (data_, std::align_val_t{ALIGNMENT});
    }
    AlignedBuffer(AlignedBuffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    AlignedBuffer(const AlignedBuffer&) = delete;
    AlignedBuffer& operator=(const AlignedBuffer&) = delete;

    std::span<std::byte> bytes() const { return {data_, size_}; }

  private:
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

/// Hands out consecutive, aligned pieces of a workspace. `carve<float>(n)` on an empty span only
/// counts, so that the same code states the size and uses the memory.
class Carver {
  public:
    explicit Carver(std::span<std::byte> memory = {}) : memory_(memory) {}

    /// The next `count` elements of type T, or null when only counting.
    /// @throws std::logic_error if the workspace is smaller than what is carved from it
    template <class T>
    T* carve(std::size_t count) {
        const std::size_t offset = used_;
        used_ += (count * sizeof(T) + AlignedBuffer::ALIGNMENT - 1) / AlignedBuffer::ALIGNMENT *
                 AlignedBuffer::ALIGNMENT;
        if (memory_.empty()) return nullptr;
        if (used_ > memory_.size())
            throw std::logic_error("workspace of " + std::to_string(memory_.size()) +
                                   " bytes carved past its end, at " + std::to_string(used_));
        return reinterpret_cast<T*>(memory_.data() + offset);
    }

    /// Bytes carved so far, padding included.
    std::size_t used() const { return used_; }

  private:
    std::span<std::byte> memory_;
    std::size_t used_ = 0;
};

}  // namespace fa
