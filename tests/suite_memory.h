#pragma once
/// @file
/// The memory of a test: blocks on the host, where in them the tensors lie, and the one function
/// that knows where an implementation runs.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "common/attention.h"

namespace fa::suite {

/// A stretch of host memory.
class MemoryBlock {
  public:
    /// Heap memory that starts `phase` bytes past a 64-byte boundary and ends with its last byte,
    /// so that AddressSanitizer sees a read behind it.
    explicit MemoryBlock(std::size_t bytes, std::size_t phase = 0);

    /// Address space of which only the touched pages get memory, for offsets beyond 2^31 elements.
    /// @throws std::runtime_error if the system does not give it
    static MemoryBlock sparse(std::size_t bytes);

    std::span<std::byte> bytes() const { return {data_.get(), size_}; }

  private:
    MemoryBlock() = default;
    std::unique_ptr<std::byte, std::function<void(std::byte*)>> data_;
    std::size_t size_ = 0;
};

/// A place in a block, in bytes from its start.
struct Place {
    MemoryBlock* block = nullptr;
    std::size_t offset = 0;

    std::byte* address() const { return block->bytes().data() + offset; }
};

/// The tensors of a problem, in blocks of memory (several may share one: packed QKV).
struct PlacedTensors {
    Place q, k, v, o, lse;  ///< lse.block null: LSE not wanted
    Strides q_strides, k_strides, v_strides, o_strides;
    std::int64_t lse_stride_batch = 0, lse_stride_head = 0;
};

/// Runs an implementation, through the door, on tensors and workspace prepared in host memory, and
/// leaves the results there. A CPU implementation gets the host's addresses. For a device, this is
/// the place that copies each block there and back (and the only one that has to change).
/// @param workspace its first `workspace_bytes` bytes are what the implementation gets
/// @throws what fa::attention() throws; std::logic_error for a device that is not built in
void run_where_it_lives(const Implementation& implementation, const AttentionProblem& problem,
                        const PlacedTensors& tensors, MemoryBlock& workspace,
                        std::size_t workspace_bytes, const Launch& launch);

}  // namespace fa::suite
