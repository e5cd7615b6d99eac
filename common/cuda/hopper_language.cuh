#pragma once
/// @file
/// The names of common/hopper_language.h for the GPU: thin wrappers around PTX. Only for code that
/// is compiled for architecture 90a alone.

#include <cuda.h>

#include "common/cuda/tensor_core_language.cuh"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// What TMA knows of a tensor; passed to a kernel by value, as part of a `__grid_constant__`.
using TensorMap = CUtensorMap;

/// %cluster_ctarank; 0 without a cluster.
__device__ __forceinline__ int block_in_cluster() {
    int block;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(block));
    return block;
}

// ---- Delays
#ifdef FA_BARRIER_DELAYS

/// What the kernels of this file are delayed by.
static __constant__ BarrierDelay barrier_delay;
__device__ __forceinline__ void sleep_if_chosen() {
    const int thread =
        block_in_cluster() * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x);
    if (thread / 32 == barrier_delay.warp)
        __nanosleep(static_cast<unsigned>(barrier_delay.nanoseconds));
}

#else

__device__ __forceinline__ void sleep_if_chosen() {}

#endif

// ---- Barriers in shared memory

/// mbarrier.init.
__device__ __forceinline__ void init_barrier(SharedAddress b, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(arrivals) : "memory");
}
/// Makes initialised barriers visible to copies. The first fence orders them before what other
/// threads do; the second (CUDA C++ Programming Guide, "Asynchronous Data Copies using TMA") before
/// copies that this thread itself begins.
__device__ __forceinline__ void publish_barriers() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
/// mbarrier.arrive.
__device__ __forceinline__ void arrive(SharedAddress b) {
    sleep_if_chosen();
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory");
}
// [wait]
/// mbarrier.arrive.expect_tx.
__device__ __forceinline__ void arrive_expecting(SharedAddress b, std::uint32_t bytes) {
    sleep_if_chosen();
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(bytes)
                 : "memory");
}
/// Not one way out of the loop but the right one: with a trap in it (a limit on the rounds, to find
/// hangs) ptxas gives up on overlapping products and vectors (its remark C7512).
__device__ __forceinline__ void wait_phase(SharedAddress b, unsigned parity) {
    sleep_if_chosen();
    std::uint32_t over = 0;
    do {
        asm volatile(
            "{.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
            "selp.u32 %0, 1, 0, p;}"
            : "=r"(over)
            : "r"(b), "r"(parity)
            : "memory");
    } while (over == 0);
    sleep_if_chosen();
}
// [wait]

// ---- Copies of boxes

// [load-box]
/// cp.async.bulk.tensor, to shared memory.
__device__ __forceinline__ void load_box(SharedAddress to, const TensorMap& map,
                                         SharedAddress barrier, int channel, int token, int head,
                                         int batch) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(channel), "r"(token), "r"(head), "r"(batch)
        : "memory");
}
// [load-box]
/// cp.async.bulk.tensor, to global memory.
__device__ __forceinline__ void store_box(const TensorMap& map, SharedAddress from, int channel,
                                          int token, int head, int batch) {
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], "
        "[%1];" ::"l"(&map),
        "r"(from), "r"(channel), "r"(token), "r"(head), "r"(batch)
        : "memory");
}
__device__ __forceinline__ void commit_stores() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
template <int PENDING>
__device__ __forceinline__ void wait_stores_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}
/// A hint: the map will be needed.
__device__ __forceinline__ void prefetch_map(const TensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}
__device__ __forceinline__ void publish_for_copies() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- Clusters

// [cluster]
/// mapa.
__device__ __forceinline__ SharedAddress address_in_block(SharedAddress address, int block) {
    SharedAddress result;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(result) : "r"(address), "r"(block));
    return result;
}
/// mbarrier.arrive, at any block's barrier. With `.release.cluster` ptxas puts a fence of the whole
/// GPU before it, which costs a fifth of all time. Nothing here needs it: what the arrival hands
/// back is written next by a copy, and has been read by products and loads that have ended.
__device__ __forceinline__ void arrive_in_cluster(SharedAddress b) {
    sleep_if_chosen();
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(b) : "memory");
}
/// cp.async.bulk.tensor, to the same place in several blocks.
__device__ __forceinline__ void load_box_for_cluster(SharedAddress to, const TensorMap& map,
                                                     SharedAddress barrier, int channel, int token,
                                                     int head, int batch, std::uint16_t blocks) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(channel), "r"(token), "r"(head), "r"(batch), "h"(blocks)
        : "memory");
}
/// st.async.
template <class U>
__device__ __forceinline__ void send(SharedAddress to, const U& x, SharedAddress barrier) {
    static_assert(sizeof(U) == 16);
    const auto v = std::bit_cast<Packed<std::uint32_t, 4>>(x);
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%0], {%1, %2, %3, %4}, "
        "[%5];" ::"r"(to),
        "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(barrier)
        : "memory");
}
// [cluster]
/// barrier.cluster.
__device__ __forceinline__ void cluster_barrier() {
    sleep_if_chosen();
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
    sleep_if_chosen();
}

// ---- Roles

template <int N>
__device__ __forceinline__ void increase_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N>
__device__ __forceinline__ void decrease_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
/// bar.sync.
__device__ __forceinline__ void named_barrier_wait(int id, int threads) {
    sleep_if_chosen();
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
    sleep_if_chosen();
}
/// bar.arrive.
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
    sleep_if_chosen();
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ bool one_lane() {
    std::uint32_t elected;
    asm volatile("{.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\tselp.u32 %0, 1, 0, p;}"
                 : "=r"(elected));
    return elected != 0;
}
/// x of lane 0.
__device__ __forceinline__ int uniform(int x) {
    return __shfl_sync(0xffffffffu, x, 0);
}

// ---- Products

__device__ __forceinline__ void fence_products() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commit_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int PENDING>
__device__ __forceinline__ void wait_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}
/// Tells the compiler that the registers have changed.
template <int N>
__device__ __forceinline__ void pin(float (&r)[N][4]) {
#pragma unroll
    for (int i = 0; i < N; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e) asm volatile("" : "+f"(r[i][e])::"memory");
}
/// The same.
template <int N>
__device__ __forceinline__ void pin(std::uint32_t (&r)[N][4]) {
#pragma unroll
    for (int i = 0; i < N; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e) asm volatile("" : "+r"(r[i][e])::"memory");
}

// [descriptor]
/// The low half of a matrix descriptor (PTX ISA, "Matrix Descriptor Format"): address and leading
/// offset, in units of 16 bytes. The high half is the same for all: groups of eight rows are 1024
/// bytes apart, swizzled by 128 bytes.
using Matrix = std::uint32_t;
inline constexpr Matrix DEEPER_BY_ROWS = 16 * 2 / 16, DEEPER_BY_COLUMNS = 16 * 128 / 16;

/// A descriptor has 14 bits for the address. Above them an address says which block of the cluster
/// it belongs to: left in, that would be read as part of the leading offset.
__device__ __forceinline__ Matrix within_block(SharedAddress address) {
    return address % (1u << 18) / 16;
}
/// Rows of 128 bytes that run along the depth.
__device__ __forceinline__ Matrix by_rows(SharedAddress address) {
    return within_block(address) + (1u << 16);
}
/// Rows of 128 bytes that run along N.
__device__ __forceinline__ Matrix by_columns(SharedAddress address, std::uint32_t box_bytes) {
    return within_block(address) + (box_bytes / 16 << 16);
}
/// The whole descriptor.
__device__ __forceinline__ std::uint64_t descriptor(Matrix low) {
    return static_cast<std::uint64_t>(1024 / 16 | 1u << 30) << 32 | low;
}
// [descriptor]

/// wgmma.mma_async.m64nNk16 of T (BFloat16 or Float16), accumulating fp32.
/// @tparam B_IS_ROWS B's rows lie in shared memory as rows of the product (V); else its columns (K)
template <class T, int N, bool B_IS_ROWS>
struct Product;

/// @cond lists of operands
// clang-format off
#define FA_D8(d, j)  "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3]), "+f"(d[j+1][0]), "+f"(d[j+1][1]), "+f"(d[j+1][2]), "+f"(d[j+1][3])
#define FA_W8(d, j)  "=f"(d[j][0]), "=f"(d[j][1]), "=f"(d[j][2]), "=f"(d[j][3]), "=f"(d[j+1][0]), "=f"(d[j+1][1]), "=f"(d[j+1][2]), "=f"(d[j+1][3])
#define FA_D64(d)  FA_D8(d, 0), FA_D8(d, 2), FA_D8(d, 4), FA_D8(d, 6)
#define FA_W64(d)  FA_W8(d, 0), FA_W8(d, 2), FA_W8(d, 4), FA_W8(d, 6)
#define FA_D128(d) FA_D64(d), FA_D8(d, 8), FA_D8(d, 10), FA_D8(d, 12), FA_D8(d, 14)
#define FA_W128(d) FA_W64(d), FA_W8(d, 8), FA_W8(d, 10), FA_W8(d, 12), FA_W8(d, 14)
#define FA_R32 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define FA_R64 FA_R32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
// clang-format on

/// @endcond

/// One width and type: the registers of D are operands 0 … REGS − 1, A0 … A4 those after them.
///
/// multiply() declares the old D dead ("=f"). As an input it would keep the exponentials that were
/// in these registers alive until here, and ptxas run out of registers.
#define FA_PRODUCT(T, TYPE, N, REGS, A0, A1, A2, A3, A4, TRANSPOSED)                               \
    template <>                                                                                    \
    struct Product<T, N, TRANSPOSED != 0> {                                                        \
        __device__ static __forceinline__ void multiply(float (&d)[N / 8][4], Matrix a,            \
                                                        Matrix b) {                                \
            asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" REGS \
                         "}, %" #A0 ", %" #A1 ", 0, 1, 1, 0, " #TRANSPOSED ";"                     \
                         : FA_W##N(d)                                                              \
                         : "l"(descriptor(a)), "l"(descriptor(b)));                                \
        }                                                                                          \
        __device__ static __forceinline__ void add(float (&d)[N / 8][4], Matrix a, Matrix b) {     \
            asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" REGS \
                         "}, %" #A0 ", %" #A1 ", 1, 1, 1, 0, " #TRANSPOSED ";"                     \
                         : FA_D##N(d)                                                              \
                         : "l"(descriptor(a)), "l"(descriptor(b)));                                \
        }                                                                                          \
        __device__ static __forceinline__ void add(float (&d)[N / 8][4],                           \
                                                   const std::uint32_t (&a)[4], Matrix b) {        \
            asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" REGS \
                         "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #A4                      \
                         ", 1, 1, 1, " #TRANSPOSED ";"                                             \
                         : FA_D##N(d)                                                              \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descriptor(b)));        \
        }                                                                                          \
    };
/// All widths of a type.
#define FA_PRODUCTS(T, TYPE)                                \
    FA_PRODUCT(T, TYPE, 64, FA_R32, 32, 33, 34, 35, 36, 0)  \
    FA_PRODUCT(T, TYPE, 128, FA_R64, 64, 65, 66, 67, 68, 0) \
    FA_PRODUCT(T, TYPE, 64, FA_R32, 32, 33, 34, 35, 36, 1)  \
    FA_PRODUCT(T, TYPE, 128, FA_R64, 64, 65, 66, 67, 68, 1)
FA_PRODUCTS(BFloat16, "bf16")
FA_PRODUCTS(Float16, "f16")
#undef FA_PRODUCTS
#undef FA_PRODUCT

// ---- Launches

/// griddepcontrol.launch_dependents.
__device__ __forceinline__ void let_next_grid_begin() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
/// griddepcontrol.wait.
__device__ __forceinline__ void wait_for_grids_before() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// ---- Others

/// stmatrix of four 8 × 8 matrices; lane l brings the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void store_matrices(SharedAddress row, const std::uint32_t (&r)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}
/// x of another lane.
__device__ __forceinline__ float from_lane(float x, int lane) {
    return __shfl_sync(0xffffffffu, x, lane);
}
/// a + b, rounded towards −∞.
__device__ __forceinline__ float add_downwards(float a, float b) {
    return __fadd_rd(a, b);
}
/// atomicAdd.
__device__ __forceinline__ int atomic_add(int* counter, int n) {
    return atomicAdd(counter, n);
}
__device__ __forceinline__ void global_fence() {
    __threadfence();
}
__device__ __forceinline__ std::int64_t clock_cycles() {
    return clock64();
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa

#ifdef FA_BARRIER_DELAYS
/// The same for the barrier of the block.
#define __syncthreads() (::fa::sleep_if_chosen(), __syncthreads(), ::fa::sleep_if_chosen())
#endif
