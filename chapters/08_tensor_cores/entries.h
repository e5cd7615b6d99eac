#pragma once
/// @file
/// Running a kernel of this chapter, on the GPU or the executor.
///
/// A kernel is described by a type with
///  - `with_config(problem, chunked, multiprocessors, use)`, which calls
///    `use.template operator()<Config>()` with the sizes for a problem and returns the bytes of
///    shared memory that they need;
///  - `function<Config, T>()`, the kernel function for these sizes and an element type;
///  - `MAX_HEAD_DIM`.

#include "chapters/08_tensor_cores/arguments.h"
#include "chapters/08_tensor_cores/tensor_core_support.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// Calls `use` with a value of the 16-bit type that is named. @throws std::logic_error for fp32,
/// which why_unsupported() has refused
template <class Use>
void with_16bit_type(DType dtype, Use&& use) {
    with_element_type(dtype, [&](auto element) {
        if constexpr (sizeof(element) == 2)
            use(element);
        else
            throw std::logic_error("tensor cores: fp32 was not refused");
    });
}

/// The reason why a kernel cannot run a problem, with the numbers, or empty. Whether rows are
/// chunked is known only with the tensors, so both must be possible.
template <class Kernel>
std::string why_unsupported_by(const AttentionProblem& p, int multiprocessors,
                               std::size_t shared_limit) {
    std::size_t need = 0;
    int block_m = 1 << 20;
    if (p.head_dim <= Kernel::MAX_HEAD_DIM)
        for (bool chunked : {false, true})
            need = std::max(need,
                            Kernel::with_config(p, chunked, multiprocessors, [&]<class Config>() {
                                block_m = std::min(block_m, Config::BLOCK_M);
                            }));
    return tensor_core_why_unsupported(p, Kernel::MAX_HEAD_DIM, block_m, need, shared_limit);
}

/// The kernel's arguments (chapters/04_cuda_tiled/arguments.h).
template <class T, class MakePointer>
Arguments<T> arguments_for(const AttentionProblem& p, const AttentionTensors& t,
                           std::size_t l2_bytes, MakePointer make_pointer) {
    return {kernel_arguments<T>(p, t, make_pointer), rows_are_chunked(p, t),
            static_cast<int>(p.batch * p.heads_q), heads_of_section(p, l2_bytes)};
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
