#pragma once
/// @file
/// Sums and maxima over the lanes of a warp and the threads of a block; every thread gets the
/// result.

#include "common/cuda/device_language.cuh"

namespace fa {

/// Sum over the warp.
__device__ __forceinline__ float warp_sum(float x) {
    for (unsigned mask = 16; mask > 0; mask /= 2) x += shuffle_xor(x, mask);
    return x;
}

/// Maximum over the warp; NaN only if all are NaN.
__device__ __forceinline__ float warp_maximum(float x) {
    for (unsigned mask = 16; mask > 0; mask /= 2) x = fmaxf(x, shuffle_xor(x, mask));
    return x;
}

/// Combines one value of each warp. `scratch` has room for 32 floats in shared memory.
template <float (*WARP)(float)>
__device__ __forceinline__ float block_reduce(float x, float neutral, float* scratch) {
    x = WARP(x);
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
    __syncthreads();  // every warp's value is there
    x = WARP(threadIdx.x % 32 < blockDim.x / 32 ? scratch[threadIdx.x % 32] : neutral);
    __syncthreads();  // all have read it: scratch may be written again
    return x;
}

/// Sum over the block, whose size is a multiple of 32.
__device__ __forceinline__ float block_sum(float x, float* scratch) {
    return block_reduce<warp_sum>(x, 0.0f, scratch);
}

/// Maximum over the block.
__device__ __forceinline__ float block_maximum(float x, float* scratch) {
    return block_reduce<warp_maximum>(x, minus_infinity(), scratch);
}

}  // namespace fa
