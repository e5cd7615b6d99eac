#include "tests/suite_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "common/aligned_buffer.h"
#include "common/memory_meter.h"
#ifdef FA_CUDA_ENABLED
#include "tests/suite_gpu_memory.h"
#endif

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
    block.sparse_ = true;
    block.data_ = {static_cast<std::byte*>(address), [bytes](std::byte* p) { munmap(p, bytes); }};
    return block;
}

AttentionTensors tensors_at(const AttentionProblem& problem, const PlacedTensors& placed,
                            const std::function<std::byte*(const Place&)>& address) {
    AttentionTensors tensors;
    tensors.q = {address(placed.q), problem.dtype, problem.q_shape(), placed.q_strides};
    tensors.k = {address(placed.k), problem.dtype, problem.kv_shape(), placed.k_strides};
    tensors.v = {address(placed.v), problem.dtype, problem.kv_shape(), placed.v_strides};
    tensors.o = {address(placed.o), problem.dtype, problem.q_shape(), placed.o_strides};
    if (placed.lse.block != nullptr)
        tensors.lse = {reinterpret_cast<float*>(address(placed.lse)), placed.lse_stride_batch,
                       placed.lse_stride_head};
    return tensors;
}

std::size_t run_where_it_lives(const Implementation& implementation,
                               const AttentionProblem& problem, const PlacedTensors& placed,
                               MemoryBlock& workspace, std::size_t workspace_bytes,
                               const Launch& launch) {
    if (implementation.device == Device::cuda) {
#ifdef FA_CUDA_ENABLED
        return run_on_gpu(implementation, problem, placed, workspace, workspace_bytes, launch);
#else
        throw std::logic_error(fmt::format("{}: this build has no CUDA", implementation.name));
#endif
    }
    const AttentionTensors tensors =
        tensors_at(problem, placed, [](const Place& place) { return place.address(); });
    const MemoryMeter meter;
    attention(implementation, problem, tensors, workspace.bytes().first(workspace_bytes), launch);
    return meter.peak();
}

}  // namespace fa::suite
