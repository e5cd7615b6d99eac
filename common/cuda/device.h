#pragma once
/// @file
/// What the GPU is and can do, asked of the GPU.

#include <cstddef>
#include <cstdint>
#include <string>

namespace fa {

/// Properties of the current CUDA device that this course looks at.
struct GpuProperties {
    std::string name;
    int compute_capability = 0;  ///< 80, 90, …
    int multiprocessors = 0;
    std::size_t shared_bytes_per_block = 0;  ///< the opt-in limit
    std::size_t shared_bytes_per_multiprocessor = 0;
    std::size_t l2_bytes = 0;
    std::size_t memory_bytes = 0;
    int driver_version = 0;   ///< CUDA version of the driver, e.g. 13000
    int runtime_version = 0;  ///< CUDA version of the runtime
};

/// Why no GPU can be used, in words, or empty if one can.
const std::string& why_no_gpu();

/// Properties of the current device, asked once. @throws std::runtime_error if there is none
const GpuProperties& gpu_properties();

/// Memory of the current device that is free, and all of it, in bytes. @throws CudaError
struct GpuMemory {
    std::size_t free = 0, total = 0;
};
GpuMemory gpu_memory();

}  // namespace fa
