#pragma once
/// @file
/// The names of common/kernel_language.h for the GPU: thin wrappers, one instruction each.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "common/dtype.h"
#include "common/packed.h"

/// Where the kernels are compiled to: here for the GPU.
#ifdef FA_BARRIER_DELAYS
#define FA_KERNEL_NAMESPACE on_gpu_delayed
#else
#define FA_KERNEL_NAMESPACE on_gpu
#endif
/// A function with a call of its own: what it needs does not weigh on the registers of its caller.
#define FA_NOINLINE __noinline__

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// Blocks of the launch, in x.
__device__ __forceinline__ int blocks_in_grid() {
    return static_cast<int>(gridDim.x);
}

/// A pointer into global memory.
template <class T>
using GlobalPointer = T*;
/// A pointer into shared memory.
template <class T>
using SharedPointer = T*;

/// An array in dynamic shared memory, `byte_offset` bytes from its start.
template <class T>
__device__ __forceinline__ T* shared_array(std::size_t byte_offset, std::int64_t) {
    // Rows of 128 bytes are swizzled by their address, and TMA swizzles groups of eight (chapter
    // 9).
    extern __shared__ __align__(1024) unsigned char dynamic_shared_memory[];
    return reinterpret_cast<T*>(dynamic_shared_memory + byte_offset);
}

/// Reads N elements in one instruction. The address is a multiple of their size.
template <int N, class T>
__device__ __forceinline__ Packed<std::remove_const_t<T>, N> load_packed(T* from) {
    return *reinterpret_cast<const Packed<std::remove_const_t<T>, N>*>(from);
}

/// Writes N elements in one instruction. The address is a multiple of their size.
template <int N, class T>
__device__ __forceinline__ void store_packed(T* to, const Packed<T, N>& value) {
    *reinterpret_cast<Packed<T, N>*>(to) = value;
}

/// The value of lane `lane ^ mask` of the warp.
__device__ __forceinline__ float shuffle_xor(float value, unsigned mask) {
    return __shfl_xor_sync(0xffffffffu, value, static_cast<int>(mask));
}

__device__ __forceinline__ void warp_barrier() {
    __syncwarp();
}

/// The same value.
__device__ __forceinline__ float to_float(float value) {
    return value;
}
/// Widens, exactly.
__device__ __forceinline__ float to_float(BFloat16 value) {
    return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}
/// Widens, exactly.
__device__ __forceinline__ float to_float(Float16 value) {
    return __half2float(__ushort_as_half(value.bits));
}

/// Rounds to nearest even.
template <class T>
__device__ __forceinline__ T from_float(float value) {
    T result;
    if constexpr (std::is_same_v<T, float>)
        result = value;
    else if constexpr (std::is_same_v<T, BFloat16>)
        result.bits = __bfloat16_as_ushort(__float2bfloat16_rn(value));
    else
        result.bits = __half_as_ushort(__float2half_rn(value));
    return result;
}

/// exp by the special function unit.
__device__ __forceinline__ float fast_exp(float x) {
    return __expf(x);
}
/// 2^x by the special function unit.
__device__ __forceinline__ float fast_exp2(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
__device__ __forceinline__ float minus_infinity() {
    return __int_as_float(0xff800000);
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
