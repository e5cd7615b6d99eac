#pragma once
/// @file
/// The suite's way onto the GPU: blocks of host memory as they are, copied there and back.

#include "tests/suite_memory.h"

namespace fa::suite {

/// As run_where_it_lives(), for an implementation on the GPU. Every block is copied whole, with its
/// pads, poison and guards; of sparse blocks, the rows that hold something.
/// @return most bytes held in DeviceBuffers beside the workspace
std::size_t run_on_gpu(const Implementation& implementation, const AttentionProblem& problem,
                       const PlacedTensors& tensors, MemoryBlock& workspace,
                       std::size_t workspace_bytes, const Launch& launch);

}  // namespace fa::suite
