#pragma once
/// @file
/// What a kernel that runs both on the GPU and on the CPU executor is written in: CUDA C++'s
/// `__global__`, `threadIdx`, `blockIdx`, `__syncthreads()`, and a few names that have a spelling
/// for each of the two:
///  - `GlobalPointer<T>`, `SharedPointer<T>`: `T*` on the GPU; checked and counted on the executor
///  - `shared_array<T>(offset, count)`: a piece of the block's dynamic shared memory
///  - `load_packed<N>(p)`, `store_packed(p, v)`: N elements by one instruction
///  - `warp_barrier()`: orders the shared-memory accesses of the lanes of a warp
///  - `shuffle_xor(x, mask)`: the x of the lane whose number differs in the bits of mask
///  - `to_float(x)`, `from_float<T>(x)`: conversion, rounding to nearest even
///  - `fast_exp`, `fast_exp2`: the hardware's approximate functions
///  - `minus_infinity()`: as a float
///  - `blocks_in_grid()`: of the launch, in x
///
/// Kernels and all that they use live in `inline namespace FA_KERNEL_NAMESPACE` of `fa`, which is
/// another one for the executor than for the GPU, and with delays than without
/// (common/barrier_delay.h): they must not be taken for the same by the linker.

#ifdef __CUDACC__
#include "common/cuda/device_language.cuh"
#else
#include "common/executor/device_language.h"
#endif
