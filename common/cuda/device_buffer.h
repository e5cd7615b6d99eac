#pragma once
/// @file
/// Device memory that frees itself, and a count of how much of it is in use.

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace fa {

/// The device has not enough memory: bytes asked for and bytes free are in the message.
class OutOfDeviceMemory : public std::runtime_error {
  public:
    OutOfDeviceMemory(std::size_t asked, std::size_t available);
    std::size_t asked() const { return asked_; }
    std::size_t available() const { return available_; }

  private:
    std::size_t asked_, available_;
};

/// Owns `size` bytes of device memory, 256-byte aligned.
class DeviceBuffer {
  public:
    DeviceBuffer() = default;
    /// @throws OutOfDeviceMemory, leaving no error behind in the CUDA runtime; also if the limit
    /// set by
    ///         set_device_memory_limit() would be passed
    explicit DeviceBuffer(std::size_t size);
    ~DeviceBuffer();
    DeviceBuffer(DeviceBuffer&& other) noexcept;
    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
    DeviceBuffer(const DeviceBuffer&) = delete;
    DeviceBuffer& operator=(const DeviceBuffer&) = delete;

    std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }
    std::span<std::byte> bytes() const { return {data_, size_}; }
    template <class T>
    T* as() const {
        return reinterpret_cast<T*>(data_);
    }

  private:
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

/// Bytes held by all DeviceBuffers now.
std::size_t device_bytes_in_use();

/// Peak of device_bytes_in_use() since construction, above the level then; meters may nest.
class DeviceMemoryMeter {
  public:
    DeviceMemoryMeter();
    ~DeviceMemoryMeter();
    DeviceMemoryMeter(const DeviceMemoryMeter&) = delete;
    DeviceMemoryMeter& operator=(const DeviceMemoryMeter&) = delete;
    std::size_t peak() const { return peak_ - start_; }

  private:
    friend void note_device_bytes(std::size_t in_use);
    std::size_t start_, peak_;
    DeviceMemoryMeter* outer_;
};

/// Pretends that the device has only this much memory for DeviceBuffers; 0 lifts the limit. Shows
/// on a large card what happens on a small one.
void set_device_memory_limit(std::size_t bytes);

/// Such a limit, lifted at the end of its scope.
class DeviceMemoryLimit {
  public:
    explicit DeviceMemoryLimit(std::size_t bytes) { set_device_memory_limit(bytes); }
    ~DeviceMemoryLimit() { set_device_memory_limit(0); }
    DeviceMemoryLimit(const DeviceMemoryLimit&) = delete;
    DeviceMemoryLimit& operator=(const DeviceMemoryLimit&) = delete;
};

}  // namespace fa
