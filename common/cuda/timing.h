#pragma once
/// @file
/// How long an implementation takes on the GPU, measured the one way that all programs share:
/// events around many launches inside a CUDA graph, on inputs that are warm or cold in the L2
/// cache.

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "common/attention.h"
#include "common/cache_state.h"
#include "common/cuda/device_buffer.h"
#include "common/cuda/stream.h"

namespace fa {

/// Dense tensors of one problem in device memory, Q, K and V standard-normal, made on the device.
class DeviceAttentionData {
  public:
    /// @throws OutOfDeviceMemory; CudaError
    DeviceAttentionData(const AttentionProblem& problem, std::uint64_t seed,
                        const CudaStream& stream);

    const AttentionTensors& tensors() const { return tensors_; }
    /// Bytes of Q, K, V, O and LSE.
    std::size_t bytes() const { return memory_.size(); }
    /// The same before there is any.
    static std::size_t bytes_of(const AttentionProblem& problem);

  private:
    DeviceBuffer memory_;
    AttentionTensors tensors_;
};

/// As many sets of tensors as it takes for a launch to find none of its inputs in L2: together they
/// are twice as large. One if that suffices.
int sets_for_cold_cache(const AttentionProblem& problem);

/// Launches recorded once in a CUDA graph, replayed and timed as often as wanted. Inside a graph
/// the GPU starts one kernel after another without waiting for the host, so that the time of a
/// short kernel is its own and not that of its launch.
class TimedGraph {
  public:
    /// One launch, the `index`-th of the graph, onto a stream that may be recording.
    using LaunchOne = std::function<void(std::int64_t index, cudaStream_t stream)>;

    /// Runs the launch once to warm up (modules are loaded, libraries set up), times it, and
    /// records enough of them for about `replay_seconds`, between `at_least` (at most 256) and 256.
    /// The launch is not called any more afterwards.
    /// @throws what the launch throws; CudaError
    TimedGraph(const CudaStream& stream, LaunchOne launch, std::int64_t at_least = 1,
               double replay_seconds = 500e-6);

    /// Seconds of one replay, all launches together, by events around it. @throws CudaError
    double replay();

    std::int64_t launches() const { return launches_; }
    /// Kernels that one launch starts, counted in the graph.
    std::int64_t kernels_per_launch() const { return kernels_ / launches_; }

  private:
    const CudaStream& stream_;
    CudaEvent start_, stop_;
    struct Destroy {
        void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
    };
    std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy> executable_;
    std::int64_t launches_ = 0, kernels_ = 0;
};

/// Everything that the timing of one implementation on one problem needs: tensors, workspace,
/// graph.
class TimedAttention {
  public:
    /// @throws Unsupported; OutOfDeviceMemory; CudaError
    TimedAttention(const Implementation& implementation, const AttentionProblem& problem,
                   CacheState cache, std::uint64_t seed);

    /// Seconds of one replay, launches() calls of the implementation.
    double replay() { return graph_.replay(); }
    std::int64_t launches() const { return graph_.launches(); }
    std::int64_t kernels_per_launch() const { return graph_.kernels_per_launch(); }
    std::size_t workspace_bytes() const { return workspace_.size(); }
    /// The tensors of one set; O and LSE hold a result.
    const AttentionTensors& tensors() const { return sets_.front().tensors(); }
    const CudaStream& stream() const { return stream_; }

  private:
    CudaStream stream_;
    DeviceBuffer workspace_;  // first: it is what does not fit, and the refusal should be quick
    std::vector<DeviceAttentionData> sets_;
    TimedGraph graph_;
};

/// What repeated replays took, in seconds per call of the implementation.
struct GpuTiming {
    double median = 0;
    double fastest = 0;
    int runs = 0;               ///< replays
    std::int64_t launches = 0;  ///< calls in each
};

/// Replays `runs` times. @throws CudaError
GpuTiming measure(TimedAttention& timed, int runs);

}  // namespace fa
