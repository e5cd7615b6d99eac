#pragma once
/// @file
/// What a kernel needs of a multiprocessor.

#include <cstddef>
#include <cstdint>

namespace fa {

/// Resources of a kernel for a problem, as the driver reports them.
struct KernelResources {
    std::int64_t blocks = 0;  ///< blocks launched
    int block_m = 0, block_n = 0;
    int head_dim = 0;  ///< of the tiles: the problem's, padded
    int threads = 0;
    std::size_t shared_bytes = 0;  ///< per block
    int registers = 0;             ///< per thread
    std::size_t local_bytes = 0;   ///< per thread: spilled registers and the stack
    int blocks_per_multiprocessor = 0;
    double occupancy = 0;  ///< resident warps over the most possible
};

/// What follows from a kernel's sizes, without what only the driver knows.
template <class Config>
KernelResources sizes_of_config(std::int64_t blocks) {
    KernelResources r;
    r.blocks = blocks;
    r.block_m = Config::BLOCK_M;
    r.block_n = Config::BLOCK_N;
    r.head_dim = Config::HEAD_DIM;
    r.threads = Config::THREADS;
    r.shared_bytes = Config::SHARED_BYTES;
    return r;
}

}  // namespace fa
