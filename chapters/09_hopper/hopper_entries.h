#pragma once
/// @file
/// Running a kernel of this chapter, on the GPU or the executor.
///
/// A kernel is described by a type with
///  - `with_config(problem, multiprocessors, use)`, which calls `use.template operator()<Config>()`
///    with the sizes for a problem;
///  - `function<Config, T>()`, the kernel function for these sizes and an element type.

#include <stdexcept>

#include "chapters/08_tensor_cores/entries.h"
#include "chapters/09_hopper/arguments.h"
#include "chapters/09_hopper/hopper_support.h"
#include "chapters/09_hopper/launch_registers.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// Whether launches of a kernel begin while the grid before them ends; the steps' do not.
template <class Config>
constexpr bool begins_early() {
    if constexpr (requires { Config::SWITCHES; })
        return Config::SWITCHES.early_launch;
    else
        return false;
}

/// Blocks of a cluster of a kernel.
template <class Config>
constexpr int cluster_of() {
    if constexpr (requires { Config::CLUSTER; })
        return Config::CLUSTER;
    else
        return 1;
}

/// Whether a kernel is compiled for an element type. A problem of another is refused
/// (hopper_why_unsupported_by()).
template <class Config, class T>
constexpr bool is_compiled_for() {
    if constexpr (requires { Config::SWITCHES; })
        return has_range_for<T>(Config::RESCALE);
    else
        return true;
}

/// Calls `use.template operator()<Config, T>()` with the sizes and the element type for a problem.
/// @throws std::logic_error if the sizes are not compiled for the type
template <class Kernel, class Use>
void with_config_and_type(const AttentionProblem& p, int multiprocessors, Use&& use) {
    with_16bit_type(p.dtype, [&](auto element) {
        using T = decltype(element);
        Kernel::with_config(p, multiprocessors, [&]<class Config>() {
            if constexpr (is_compiled_for<Config, T>())
                use.template operator()<Config, T>();
            else
                throw std::logic_error("a size that is not compiled for this type was chosen");
        });
    });
}

/// The reason why a kernel cannot run a problem, or empty.
template <class Kernel>
std::string hopper_why_unsupported_by(const AttentionProblem& p, int multiprocessors) {
    std::int64_t most_head_dim = 0;
    int block_m = 1;
    bool has_range = true;
    Kernel::with_config(p, multiprocessors, [&]<class Config>() {
        most_head_dim = Config::HEAD_DIM;
        block_m = Config::BLOCK_M;
        has_range = p.dtype != DType::f16 || is_compiled_for<Config, Float16>();
    });
    if (std::string reason = hopper_why_unsupported(p, most_head_dim, block_m); !reason.empty())
        return reason;
    return has_range ? "" : "fp16 has no room for references that hardly ever move";
}

/// Scratch memory: the counter that tiles are fetched from.
template <class Kernel>
std::size_t hopper_workspace_bytes(const AttentionProblem& p, int multiprocessors) {
    bool fetches = false;
    Kernel::with_config(p, multiprocessors,
                        [&]<class Config>() { fetches = Config::FETCHES_TILES; });
    return fetches ? sizeof(int) : 0;
}

/// The kernel's arguments.
/// @param make_pointer makes a GlobalPointer (chapters/04_cuda_tiled/arguments.h)
/// @param make_map     makes a TensorMap of a BoxSource and the rows of a box
template <class Config, class T, class MakePointer, class MakeMap>
HopperArguments<T> hopper_arguments(const AttentionProblem& p, const AttentionTensors& t,
                                    std::span<std::byte> workspace, std::size_t l2_bytes,
                                    MakePointer make_pointer, MakeMap make_map) {
    static_assert(finds_its_registers<Config>(), "warpgroups would wait for registers for ever");
    static_assert(Config::SHARED_BYTES <= HOPPER_SHARED_LIMIT);
    const auto map = [&](const void* data, const Shape& shape, const Strides& strides, int rows) {
        return make_map(box_source(data, shape, strides), rows);
    };
    const auto steps = [](const Strides& s) { return MapSteps{s.head != 0, s.batch != 0}; };
    HopperArguments<T> a;
    // Sections of all of the L2 cache, not half of it as in chapter 8: a block has less at a time
    // on its way, and two small sections balance worse than a large one.
    static_cast<Arguments<T>&>(a) = arguments_for<T>(p, t, 2 * l2_bytes, make_pointer);
    a.q_map = map(t.q.data, p.q_shape(), t.q.strides, 64);
    a.k_map = map(t.k.data, p.kv_shape(), t.k.strides, Config::BLOCK_N / cluster_of<Config>());
    a.v_map = map(t.v.data, p.kv_shape(), t.v.strides, Config::BLOCK_N / cluster_of<Config>());
    a.o_map = map(t.o.data, p.q_shape(), t.o.strides, 64);
    a.q_steps = steps(t.q.strides);
    a.k_steps = steps(t.k.strides);
    a.v_steps = steps(t.v.strides);
    a.tiles = static_cast<int>(blocks_of(p, Config::BLOCK_M));
    a.next_tile = make_pointer(reinterpret_cast<int*>(workspace.data()),
                               static_cast<std::int64_t>(workspace.size() / sizeof(int)));
    a.trace = {};
    return a;
}

/// The blocks of a launch.
template <class Config>
std::int64_t hopper_blocks(const AttentionProblem& p, int multiprocessors) {
    const std::int64_t tiles = blocks_of(p, Config::BLOCK_M);
    constexpr int CLUSTER = cluster_of<Config>();
    return CLUSTER * (Config::PERSISTENT
                          ? std::min<std::int64_t>(tiles, std::max(1, multiprocessors / CLUSTER))
                          : tiles);
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
