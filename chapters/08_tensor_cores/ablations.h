#pragma once
/// @file
/// The last kernel with one of its ideas taken out, for 64 channels in bf16.

#include <functional>
#include <string_view>

#include "chapters/04_cuda_tiled/kernel_resources.h"
#include "common/attention.h"

namespace fa {

/// A variant of the kernel. Only in builds with CUDA.
struct Ablation {
    std::string_view name;  ///< what is taken out, or put in
    void (*run)(const AttentionProblem&, const AttentionTensors&, void* stream);
    KernelResources (*resources)(const AttentionProblem&);
};

/// Calls `use` for each variant; the first is the kernel as it is.
void for_each_ablation(const std::function<void(const Ablation&)>& use);

}  // namespace fa
