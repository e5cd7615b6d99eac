#include "tests/suite_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "common/aligned_buffer.h"

namespace fa::suite {

MemoryBlock::MemoryBlock(std::size_t bytes, std::size_t phase) : size_(bytes) {
    // std::function wants a copyable deleter, so the buffer is shared with it.
    auto buffer = std::make_shared<AlignedBuffer>(bytes + phase);
    data_ = {buffer->bytes().data() + phase, [buffer](std::byte*) mutable { buffer.reset(); }};
}

MemoryBlock MemoryBlock::sparse(std::size_t bytes) {
    void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED)
        throw std::runtime_error(
            fmt::format("mmap of {} bytes without reserve: {}", bytes, std::strerror(errno)));
    MemoryBlock block;
    block.size_ = bytes;
    block.data_ = {static_cast<std::byte*>(address), [bytes](std::byte* p) { munmap(p, bytes); }};
    return block;
}

void run_where_it_lives(const Implementation& implementation, const AttentionProblem& problem,
                        const PlacedTensors& placed, MemoryBlock& workspace,
                        std::size_t workspace_bytes, const Launch& launch) {
    if (implementation.device != Device::cpu)
        throw std::logic_error(fmt::format("{}: the suite cannot reach memory of device {}",
                                           implementation.name, name_of(implementation.device)));
    AttentionTensors tensors;
    tensors.q = {placed.q.address(), problem.dtype, problem.q_shape(), placed.q_strides};
    tensors.k = {placed.k.address(), problem.dtype, problem.kv_shape(), placed.k_strides};
    tensors.v = {placed.v.address(), problem.dtype, problem.kv_shape(), placed.v_strides};
    tensors.o = {placed.o.address(), problem.dtype, problem.q_shape(), placed.o_strides};
    if (placed.lse.block != nullptr)
        tensors.lse = {reinterpret_cast<float*>(placed.lse.address()), placed.lse_stride_batch,
                       placed.lse_stride_head};
    attention(implementation, problem, tensors, workspace.bytes().first(workspace_bytes), launch);
}

}  // namespace fa::suite
