#pragma once
/// @file
/// Device address space of which only some pages have memory, to place rows beyond 2^31 elements on
/// any card.

#include <cuda.h>

#include <cstddef>
#include <map>

namespace fa::suite {

/// Reserves addresses and backs pages one by one. An access to a page without memory is an error
/// of the GPU, reported by the next call.
class SparseDeviceMemory {
  public:
    /// @throws std::runtime_error with the driver's reason
    explicit SparseDeviceMemory(std::size_t bytes);
    ~SparseDeviceMemory();
    SparseDeviceMemory(const SparseDeviceMemory&) = delete;
    SparseDeviceMemory& operator=(const SparseDeviceMemory&) = delete;

    /// Gives memory to the pages of [offset, offset + bytes). @throws std::runtime_error
    void back(std::size_t offset, std::size_t bytes);

    std::byte* address() const { return reinterpret_cast<std::byte*>(start_); }

  private:
    CUdeviceptr start_ = 0;
    std::size_t size_ = 0, page_ = 0;
    CUmemAllocationProp properties_{};
    std::map<std::size_t, CUmemGenericAllocationHandle> pages_;  // by number
};

}  // namespace fa::suite
