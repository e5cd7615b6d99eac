#pragma once
/// @file
/// The names of common/tensor_core_language.h for the GPU: thin wrappers around PTX. Compiled for a
/// GPU older than compute capability 8.0 they trap; the host refuses to launch there.

#include <bit>

#include "common/cuda/device_language.cuh"

/// An instruction that needs compute capability 8.0.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define FA_PTX_80(...) __trap()
#else
#define FA_PTX_80(...) asm volatile(__VA_ARGS__)
#endif

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// An address in the shared window.
using SharedAddress = std::uint32_t;

/// The address `byte_offset` bytes from the start of dynamic shared memory.
__device__ __forceinline__ SharedAddress shared_address(std::uint32_t byte_offset) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared_array<char>(0, 0))) +
           byte_offset;
}

/// Reads 2, 4 or 16 bytes.
template <class U>
__device__ __forceinline__ U load_shared(SharedAddress from) {
    static_assert(sizeof(U) == 2 || sizeof(U) == 4 || sizeof(U) == 16);
    if constexpr (sizeof(U) == 2) {
        std::uint16_t value;
        asm volatile("ld.shared.u16 %0, [%1];" : "=h"(value) : "r"(from) : "memory");
        return std::bit_cast<U>(value);
    } else if constexpr (sizeof(U) == 4) {
        std::uint32_t value;
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(from) : "memory");
        return std::bit_cast<U>(value);
    } else {
        Packed<std::uint32_t, 4> v;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                     : "r"(from)
                     : "memory");
        return std::bit_cast<U>(v);
    }
}

/// Writes 4 or 16 bytes.
template <class U>
__device__ __forceinline__ void store_shared(SharedAddress to, const U& value) {
    static_assert(sizeof(U) == 4 || sizeof(U) == 16);
    if constexpr (sizeof(U) == 4) {
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(std::bit_cast<std::uint32_t>(value))
                     : "memory");
    } else {
        const auto v = std::bit_cast<Packed<std::uint32_t, 4>>(value);
        asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v[0]), "r"(v[1]),
                     "r"(v[2]), "r"(v[3])
                     : "memory");
    }
}

/// cp.async, past L1.
template <class T>
__device__ __forceinline__ void copy_async(SharedAddress to, const T* from, int bytes) {
    FA_PTX_80("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
              "r"(bytes)
              : "memory");
}
/// Ends a group of copies.
__device__ __forceinline__ void commit_copies() {
    FA_PTX_80("cp.async.commit_group;" ::: "memory");
}
/// Waits until at most PENDING groups are on their way.
template <int PENDING>
__device__ __forceinline__ void wait_copies() {
    FA_PTX_80("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/// ldmatrix.
__device__ __forceinline__ void load_matrices(std::uint32_t (&r)[4], SharedAddress row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row)
                 : "memory");
}
/// ldmatrix.trans.
__device__ __forceinline__ void load_matrices_transposed(std::uint32_t (&r)[4], SharedAddress row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row)
                 : "memory");
}

/// mma.sync. Not volatile: the compiler may move it among the other instructions.
template <class T>
__device__ __forceinline__ void multiply_add(float (&c)[4], const std::uint32_t (&a)[4],
                                             std::uint32_t b0, std::uint32_t b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    __trap();
#else
    if constexpr (std::is_same_v<T, BFloat16>)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

/// One conversion instruction for both.
template <class T>
__device__ __forceinline__ std::uint32_t pack(float low, float high) {
    std::uint32_t r = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    __trap();
#else
    if constexpr (std::is_same_v<T, BFloat16>)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
#endif
    return r;
}

/// Whether any lane of the warp says so.
__device__ __forceinline__ bool warp_any(bool x) {
    return __any_sync(0xffffffffu, x) != 0;
}

/// The bits of a float.
__device__ __forceinline__ int float_bits(float x) {
    return __float_as_int(x);
}
/// The float with these bits.
__device__ __forceinline__ float float_from_bits(int x) {
    return __int_as_float(x);
}
/// One instruction on compute capability 9.0 and later.
__device__ __forceinline__ int maximum3(int a, int b, int c) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    return __vimax3_s32(a, b, c);
#else
    return max(max(a, b), c);
#endif
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
