#pragma once
/// @file
/// The last kernel without one of its ideas, or with one that was left out, on the GPU, in bf16.

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "chapters/04_cuda_tiled/kernel_resources.h"
#include "chapters/09_hopper/timeline.h"
#include "common/attention.h"

namespace fa {

/// A variant of the kernel. Only in builds for 90a.
struct HopperVariant {
    std::string_view name;
    /// @param workspace at least 4 bytes of device memory
    void (*run)(const AttentionProblem&, const AttentionTensors&, std::span<std::byte> workspace,
                void* stream);
    KernelResources (*resources)(const AttentionProblem&);
};

/// Calls `use` for each variant for 64 channels; the first is the kernel as it is.
void for_each_hopper_variant64_on_gpu(const std::function<void(const HopperVariant&)>& use);
/// The same for 128 channels.
void for_each_hopper_variant128_on_gpu(const std::function<void(const HopperVariant&)>& use);

/// Runs every schedule of the timeline on the GPU, once to warm up and once for the stamps.
/// @param blocks   of a launch that leave stamps
/// @param capacity stamps of a warpgroup at most
std::vector<TracedSchedule> trace_on_gpu(const AttentionProblem& problem, std::uint64_t seed,
                                         int blocks, int capacity);

}  // namespace fa
