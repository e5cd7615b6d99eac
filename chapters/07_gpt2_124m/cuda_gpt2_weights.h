#pragma once
/// @file
/// The weights of a GPT-2 in device memory.

#include <vector>

#include "chapters/07_gpt2_124m/gpt2_model.h"
#include "common/cuda/check.h"
#include "common/cuda/device_buffer.h"

namespace fa {

/// Gain and bias of a layer norm, [width] each.
template <class T>
struct CudaNorm {
    const T *gain, *bias;
};

/// y = x·W + b: weight [in, out], bias [out].
template <class T>
struct CudaLinear {
    std::int64_t in, out;
    const T *weight, *bias;
};

/// One layer of the network.
template <class T>
struct CudaBlock {
    CudaNorm<T> norm_1;
    CudaLinear<T> qkv, projection;
    CudaNorm<T> norm_2;
    CudaLinear<T> expand, contract;
};

/// All weights, rounded to T, in one allocation. Each array starts at a multiple of 256 bytes, as
/// the matrix products want it.
template <class T>
class CudaGpt2Weights {
  public:
    /// Copies the weights to the device and waits for that.
    /// @throws OutOfDeviceMemory, CudaError
    explicit CudaGpt2Weights(const Gpt2& model) {
        const Gpt2Weights& w = model.weights;
        // The output layer's matrix gets rows of zeros up to a multiple of 64: an odd number of
        // columns of logits would rule out the tensor cores' aligned loads.
        padded_vocabulary = (model.config.vocabulary + 63) / 64 * 64;
        const std::int64_t padding =
            (padded_vocabulary - model.config.vocabulary) * model.config.width;
        for (const bool count_only : {true, false}) {
            used_ = 0;
            count_only_ = count_only;
            if (!count_only) {
                memory_ = DeviceBuffer(host_bytes_);
                host_.resize(memory_.size() / sizeof(T));
            }
            token_embedding = place(w.token_embedding, padding);
            position_embedding = place(w.position_embedding);
            head = w.own_head.empty() ? token_embedding : place(w.own_head, padding);
            blocks.clear();
            for (const BlockWeights& block : w.blocks)
                blocks.push_back({norm(block.norm_1), linear(block.qkv), linear(block.projection),
                                  norm(block.norm_2), linear(block.expand),
                                  linear(block.contract)});
            final_norm = norm(w.final_norm);
            host_bytes_ = used_;
        }
        FA_CUDA_CHECK(
            cudaMemcpy(memory_.data(), host_.data(), memory_.size(), cudaMemcpyHostToDevice));
        host_ = {};
    }

    std::int64_t padded_vocabulary = 0;     ///< rows of `head`
    const T* token_embedding = nullptr;     ///< [vocabulary, width]
    const T* position_embedding = nullptr;  ///< [context, width]
    const T* head = nullptr;                ///< [padded_vocabulary, width]
    std::vector<CudaBlock<T>> blocks;
    CudaNorm<T> final_norm{};

  private:
    const T* place(const std::vector<float>& values, std::int64_t padding = 0) {
        constexpr std::size_t ALIGNMENT = 256;
        const std::size_t start = used_;
        const std::size_t bytes = (values.size() + static_cast<std::size_t>(padding)) * sizeof(T);
        used_ += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        if (count_only_) return nullptr;
        for (std::size_t i = 0; i < values.size(); ++i)
            host_[start / sizeof(T) + i] = static_cast<T>(values[i]);
        return reinterpret_cast<const T*>(memory_.data() + start);
    }
    CudaNorm<T> norm(const NormWeights& w) { return {place(w.gain), place(w.bias)}; }
    CudaLinear<T> linear(const LinearWeights& w) {
        return {w.in, w.out, place(w.weight), place(w.bias)};
    }

    bool count_only_ = true;
    std::size_t used_ = 0, host_bytes_ = 0;
    std::vector<T> host_;
    DeviceBuffer memory_;
};

}  // namespace fa
