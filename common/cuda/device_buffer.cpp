#include "common/cuda/device_buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "common/cuda/check.h"
#include "common/cuda/device.h"

namespace fa {
namespace {

std::mutex mutex;
std::size_t in_use = 0;
std::size_t limit = 0;
DeviceMemoryMeter* innermost = nullptr;

std::size_t available() {
    const std::size_t free = gpu_memory().free;
    return limit == 0 ? free : std::min(free, limit - std::min(limit, in_use));
}

}  // namespace

/// Raises the peak of every meter that is running.
void note_device_bytes(std::size_t bytes) {
    for (DeviceMemoryMeter* meter = innermost; meter != nullptr; meter = meter->outer_)
        meter->peak_ = std::max(meter->peak_, bytes);
}

OutOfDeviceMemory::OutOfDeviceMemory(std::size_t asked, std::size_t available_bytes)
    : std::runtime_error(
          fmt::format("out of device memory: {} bytes asked for, {} free", asked, available_bytes)),
      asked_(asked),
      available_(available_bytes) {}

DeviceBuffer::DeviceBuffer(std::size_t size) {
    if (size == 0) return;
    const std::lock_guard lock(mutex);
    if (limit != 0 && in_use + size > limit) throw OutOfDeviceMemory(size, available());
    void* memory = nullptr;
    const cudaError_t code = cudaMalloc(&memory, size);
    if (code == cudaErrorMemoryAllocation) {
        cudaGetLastError();  // not sticky, but the runtime would report it from the next check
        throw OutOfDeviceMemory(size, available());
    }
    FA_CUDA_CHECK(code);
    data_ = static_cast<std::byte*>(memory);
    size_ = size;
    in_use += size;
    note_device_bytes(in_use);
}

DeviceBuffer::~DeviceBuffer() {
    if (data_ == nullptr) return;
    const std::lock_guard lock(mutex);
    cudaFree(data_);  // an error here is that of an earlier kernel, reported where it was launched
    in_use -= size_;
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
}

std::size_t device_bytes_in_use() {
    const std::lock_guard lock(mutex);
    return in_use;
}

DeviceMemoryMeter::DeviceMemoryMeter() {
    const std::lock_guard lock(mutex);
    start_ = peak_ = in_use;
    outer_ = std::exchange(innermost, this);
}

DeviceMemoryMeter::~DeviceMemoryMeter() {
    const std::lock_guard lock(mutex);
    innermost = outer_;
}

void set_device_memory_limit(std::size_t bytes) {
    const std::lock_guard lock(mutex);
    limit = bytes;
}

}  // namespace fa
