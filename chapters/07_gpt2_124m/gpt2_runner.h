#pragma once
/// @file
/// A network on its device, ready to run: what evaluation and generation need of it, whether it
/// computes on the CPU or on a GPU.

#include <cstdint>
#include <memory>
#include <span>

#include "chapters/07_gpt2_124m/gpt2_model.h"

namespace fa {

/// Runs one network with one attention.
class Gpt2Runner {
  public:
    virtual ~Gpt2Runner() = default;

    /// What the network pays for each target, in nats (see cross_entropy()).
    /// @param tokens  [batch, length], whole sequences of one length
    /// @param targets as many ids; targets[i] follows tokens[i]
    /// @param losses  as many as targets
    /// @throws std::invalid_argument naming the numbers if sizes do not fit or an id is outside;
    ///         Unsupported if the attention refuses the problem
    virtual void losses(std::span<const std::int32_t> tokens, std::int64_t batch,
                        std::span<const std::int32_t> targets, std::span<double> losses) = 0;

    /// Runs tokens that follow those of the calls before (Forward::Cache::keep) and gives the
    /// logits of what comes next, [vocabulary]. @throws as losses()
    virtual void next_logits(std::span<const std::int32_t> tokens, std::span<float> logits) = 0;

    /// Seconds spent inside the attention door by all calls so far.
    virtual double attention_seconds() const = 0;
};

/// A runner on the device of the options' attention. Parameters and errors as Forward's
/// constructor;
/// @throws std::invalid_argument also for an attention whose device this build or machine lacks
std::unique_ptr<Gpt2Runner> make_runner(const Gpt2& model, const ForwardOptions& options,
                                        std::int64_t batch, std::int64_t max_length,
                                        Forward::Cache cache);

/// As make_runner(), for a CUDA attention: weights and activations in the options' type in device
/// memory, products by cuBLASLt. Takes all batches whose activations fit.
/// @throws OutOfDeviceMemory
std::unique_ptr<Gpt2Runner> make_cuda_runner(const Gpt2& model, const ForwardOptions& options,
                                             std::int64_t batch, std::int64_t max_length,
                                             Forward::Cache cache);

}  // namespace fa
