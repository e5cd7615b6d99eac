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
    bool is_sparse() const { return sparse_; }

  private:
    MemoryBlock() = default;
    std::unique_ptr<std::byte, std::function<void(std::byte*)>> data_;
    std::size_t size_ = 0;
    bool sparse_ = false;
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

/// The views of a problem's tensors.
/// @param address where a place lies for the one who runs
AttentionTensors tensors_at(const AttentionProblem& problem, const PlacedTensors& placed,
                            const std::function<std::byte*(const Place&)>& address);

/// Runs an implementation, through the door, on tensors and workspace prepared in host memory, and
/// leaves the results there. An implementation on the CPU, or on the executor, gets the host's
/// addresses. For one on the GPU every block is copied there whole, guards and all, and back.
/// @param workspace its first `workspace_bytes` bytes are what the implementation gets
/// @return most bytes it held beside its workspace: on the heap, or on a GPU in device buffers
/// @throws what fa::attention() throws; std::logic_error for a device that is not built in
std::size_t run_where_it_lives(const Implementation& implementation,
                               const AttentionProblem& problem, const PlacedTensors& tensors,
                               MemoryBlock& workspace, std::size_t workspace_bytes,
                               const Launch& launch);

}  // namespace fa::suite
