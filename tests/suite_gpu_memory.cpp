#include "tests/suite_gpu_memory.h"

#include <cstdint>
#include <map>
#include <vector>

#include "common/aligned_buffer.h"
#include "common/cuda/check.h"
#include "common/cuda/device_buffer.h"
#include "common/cuda/stream.h"
#include "tests/sparse_device_memory.h"

namespace fa::suite {
namespace {

/// A dense block on the device, as far from a 64-byte boundary as it is on the host, and ending
/// with its last byte: compute-sanitizer sees an access behind it.
class DenseCopy {
  public:
    explicit DenseCopy(const MemoryBlock& host)
        : host_(host.bytes()),
          phase_(reinterpret_cast<std::uintptr_t>(host_.data()) % AlignedBuffer::ALIGNMENT),
          memory_(phase_ + host_.size()) {
        if (!host_.empty())
            FA_CUDA_CHECK(
                cudaMemcpy(address(), host_.data(), host_.size(), cudaMemcpyHostToDevice));
    }
    std::byte* address() const { return memory_.data() + phase_; }
    void copy_back() const {
        if (!host_.empty())
            FA_CUDA_CHECK(
                cudaMemcpy(host_.data(), address(), host_.size(), cudaMemcpyDeviceToHost));
    }

  private:
    std::span<std::byte> host_;
    std::size_t phase_;
    DeviceBuffer memory_;
};

/// The rows of all tensors that lie in sparse blocks: where on the host, and how many bytes.
struct Row {
    MemoryBlock* block;
    std::size_t offset, bytes;
    bool is_output;
};
std::vector<Row> rows_of(const AttentionProblem& p, const PlacedTensors& t) {
    std::vector<Row> rows;
    const auto add = [&](const Place& place, const Shape& shape, const Strides& strides,
                         std::size_t element, bool is_output) {
        for (std::int64_t b = 0; b < shape.batch; ++b)
            for (std::int64_t h = 0; h < shape.heads; ++h)
                for (std::int64_t n = 0; n < shape.tokens; ++n) {
                    const std::int64_t at =
                        b * strides.batch + h * strides.head + n * strides.token;
                    rows.push_back({place.block,
                                    place.offset + static_cast<std::size_t>(at) * element,
                                    static_cast<std::size_t>(shape.dim) * element, is_output});
                }
    };
    const std::size_t element = size_of(p.dtype);
    add(t.q, p.q_shape(), t.q_strides, element, false);
    add(t.k, p.kv_shape(), t.k_strides, element, false);
    add(t.v, p.kv_shape(), t.v_strides, element, false);
    add(t.o, p.q_shape(), t.o_strides, element, true);
    if (t.lse.block != nullptr)
        add(t.lse, {p.batch, p.heads_q, 1, p.len_q}, {t.lse_stride_batch, t.lse_stride_head, 0},
            sizeof(float), true);
    return rows;
}

/// All blocks of a run on the device.
class Copies {
  public:
    Copies(const AttentionProblem& problem, const PlacedTensors& placed)
        : rows_(rows_of(problem, placed)) {
        for (const Place* place : {&placed.q, &placed.k, &placed.v, &placed.o, &placed.lse}) {
            MemoryBlock* const block = place->block;
            if (block == nullptr) continue;
            if (block->is_sparse())
                sparse_.try_emplace(block, block->bytes().size());
            else
                dense_.try_emplace(block, *block);
        }
        for (const Row& row : rows_) {
            const auto place = sparse_.find(row.block);
            if (place == sparse_.end()) continue;
            place->second.back(row.offset, row.bytes);
            FA_CUDA_CHECK(cudaMemcpy(place->second.address() + row.offset,
                                     row.block->bytes().data() + row.offset, row.bytes,
                                     cudaMemcpyHostToDevice));
        }
    }

    std::byte* address(const Place& place) const {
        const auto sparse = sparse_.find(place.block);
        return (sparse != sparse_.end() ? sparse->second.address()
                                        : dense_.at(place.block).address()) +
               place.offset;
    }

    void copy_back() const {
        for (const auto& [block, copy] : dense_) copy.copy_back();
        for (const Row& row : rows_)
            if (const auto place = sparse_.find(row.block); place != sparse_.end() && row.is_output)
                FA_CUDA_CHECK(cudaMemcpy(row.block->bytes().data() + row.offset,
                                         place->second.address() + row.offset, row.bytes,
                                         cudaMemcpyDeviceToHost));
    }

  private:
    std::vector<Row> rows_;
    std::map<MemoryBlock*, DenseCopy> dense_;
    std::map<MemoryBlock*, SparseDeviceMemory> sparse_;
};

}  // namespace

std::size_t run_on_gpu(const Implementation& implementation, const AttentionProblem& problem,
                       const PlacedTensors& placed, MemoryBlock& workspace,
                       std::size_t workspace_bytes, const Launch& launch) {
    const Copies copies(problem, placed);
    const DenseCopy workspace_copy(workspace);
    const AttentionTensors tensors =
        tensors_at(problem, placed, [&](const Place& place) { return copies.address(place); });

    // A stream that does not wait for the default one: an implementation that launched there would
    // race with the copies.
    const CudaStream stream;
    Launch on_stream = launch;
    on_stream.stream = stream.get();
    FA_CUDA_CHECK(cudaDeviceSynchronize());
    const DeviceMemoryMeter meter;
    attention(implementation, problem, tensors, {workspace_copy.address(), workspace_bytes},
              on_stream);
    const std::size_t held = meter.peak();
    stream.synchronize();
    FA_CUDA_CHECK(cudaGetLastError());
    copies.copy_back();
    workspace_copy.copy_back();
    return held;
}

}  // namespace fa::suite
