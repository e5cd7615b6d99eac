#pragma once
/// @file
/// What one multiprocessor of an H200 has to offer, and what follows for a kernel: predictions on a
/// machine without a GPU.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "chapters/04_cuda_tiled/kernel_resources.h"
#include "common/attention.h"

namespace fa {

/// Compute capability 9.0: CUDA C++ Programming Guide, "Features and Technical Specifications" and
/// "Arithmetic Instructions". Multiprocessors and clock: of an H200.
struct Multiprocessor {
    static constexpr int COUNT = 132;
    static constexpr double CLOCK_HZ = 1.98e9;
    static constexpr std::size_t SHARED_BYTES = 228 * 1024;
    static constexpr std::size_t SHARED_BYTES_PER_BLOCK = 227 * 1024;
    static constexpr std::size_t SHARED_BYTES_RESERVED = 1024;  ///< of each block, for the system
    static constexpr int THREADS = 2048;
    static constexpr int REGISTERS = 65536;
    static constexpr double MULTIPLY_ADDS_PER_CLOCK = 128;
    static constexpr double EXPONENTIALS_PER_CLOCK = 16;
    static constexpr double SHARED_WAVEFRONTS_PER_CLOCK = 1;  ///< of 128 bytes
};

/// Blocks that run at one time as far as shared memory and threads go; registers are known to the
/// compiler of the GPU alone.
inline int blocks_by_shared_memory(std::size_t shared_bytes, int threads) {
    const auto by_memory = static_cast<int>(Multiprocessor::SHARED_BYTES /
                                            (shared_bytes + Multiprocessor::SHARED_BYTES_RESERVED));
    return std::min(by_memory, Multiprocessor::THREADS / threads);
}

/// Tiles of a fused kernel for a problem: each block of queries meets those up to the last key that
/// its last query sees.
inline std::int64_t tiles_of(const AttentionProblem& p, int block_m, int block_n) {
    std::int64_t tiles = 0;
    for (std::int64_t first = 0; first < p.len_q; first += block_m) {
        const std::int64_t last = std::min<std::int64_t>(first + block_m, p.len_q) - 1;
        tiles += (p.visible_keys(last) + block_n - 1) / block_n;
    }
    return tiles * p.batch * p.heads_q;
}

}  // namespace fa
