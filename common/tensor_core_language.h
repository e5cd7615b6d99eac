#pragma once
/// @file
/// What a kernel for tensor cores (compute capability 8.0 and later) needs beyond
/// common/kernel_language.h, each the name of one PTX instruction:
///  - `SharedAddress`: a byte address in shared memory, an integer that kernels may compute with;
///    `shared_address(offset)` makes one from an offset into the block's dynamic shared memory
///  - `load_shared<U>(address)`, `store_shared(address, value)`
///  - `copy_async(address, source, bytes)`: cp.async of 16 bytes, or of 16 zeros if `bytes` is 0;
///    `commit_copies()`, `wait_copies<PENDING>()`
///  - `load_matrices(regs, address)`, `load_matrices_transposed(regs, address)`: ldmatrix of four
///    8 × 8 matrices of 16-bit elements; lane l brings the address of row l % 8 of matrix l / 8
///  - `multiply_add<T>(c, a, b0, b1)`: mma.sync.m16n8k16, C += A·B with fp32 accumulators
///  - `pack<T>(low, high)`: two floats rounded to T in one register
///  - `warp_any(x)`: whether any lane of the warp says so (CUDA's own `__syncthreads_or(x)` asks
///  the
///    block)
///  - `maximum3(a, b, c)` of integers; `float_bits(x)`: a float as an integer, and back
///    `float_from_bits(x)`
///
/// Which lane holds which element (PTX ISA, "Matrix Fragments for mma.m16n8k16"), with
/// g = lane / 4 and q = lane % 4:
///
///     A, 16 × 16   a[0]: row g,   columns 2q, 2q+1      a[2]: the same rows, columns 8 further
///                  a[1]: row g+8, columns 2q, 2q+1      a[3]
///     B, 16 × 8    b0: rows 2q, 2q+1 of column g        b1: rows 8 further
///     C, 16 × 8    c[0], c[1]: row g, columns 2q, 2q+1  c[2], c[3]: row g+8
///
/// The lower half of a register holds the element with the smaller index.

#include "common/kernel_language.h"

#ifdef __CUDACC__
#include "common/cuda/tensor_core_language.cuh"
#else
#include "common/executor/tensor_core_language.h"
#endif
