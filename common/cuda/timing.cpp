#include "common/cuda/timing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/cuda/check.h"
#include "common/cuda/device.h"
#include "common/cuda/random.h"

namespace fa {
namespace {

constexpr std::size_t ALIGNMENT = 256;  // as cudaMalloc gives

std::size_t aligned(std::size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

std::size_t tensor_bytes(const Shape& shape, DType dtype) {
    return aligned(static_cast<std::size_t>(shape.count()) * size_of(dtype));
}

std::size_t lse_bytes(const AttentionProblem& p) {
    return aligned(static_cast<std::size_t>(p.batch * p.heads_q * p.len_q) * sizeof(float));
}

std::vector<DeviceAttentionData> make_sets(const AttentionProblem& problem, CacheState cache,
                                           std::uint64_t seed, const CudaStream& stream) {
    const int count = cache == CacheState::cold ? sets_for_cold_cache(problem) : 1;
    std::vector<DeviceAttentionData> sets;
    for (int i = 0; i < count; ++i)
        sets.emplace_back(problem, seed + static_cast<std::uint64_t>(i), stream);
    return sets;
}

std::size_t supported_workspace_bytes(const Implementation& implementation,
                                      const AttentionProblem& problem) {
    if (const std::string reason = implementation.why_unsupported(problem); !reason.empty())
        throw Unsupported(reason);
    return implementation.workspace_bytes(problem, {});
}

struct DestroyGraph {
    void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;

/// A graph of what `record` sends to the stream. @throws what `record` throws
Graph recorded(const CudaStream& stream, const std::function<void()>& record) {
    cudaGraph_t graph = nullptr;
    FA_CUDA_CHECK(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
    try {
        record();
    } catch (...) {
        cudaStreamEndCapture(stream.get(), &graph);  // the stream must not stay in recording
        if (graph) cudaGraphDestroy(graph);
        cudaGetLastError();
        throw;
    }
    FA_CUDA_CHECK(cudaStreamEndCapture(stream.get(), &graph));
    return Graph(graph);
}

std::int64_t kernels_in(cudaGraph_t graph) {
    std::size_t count = 0;
    FA_CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &count));
    std::vector<cudaGraphNode_t> nodes(count);
    FA_CUDA_CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
    std::int64_t kernels = 0;
    for (const cudaGraphNode_t node : nodes) {
        cudaGraphNodeType type{};
        FA_CUDA_CHECK(cudaGraphNodeGetType(node, &type));
        kernels += type == cudaGraphNodeTypeKernel;
    }
    return kernels;
}

}  // namespace

std::size_t DeviceAttentionData::bytes_of(const AttentionProblem& p) {
    return 2 * (tensor_bytes(p.q_shape(), p.dtype) + tensor_bytes(p.kv_shape(), p.dtype)) +
           lse_bytes(p);
}

DeviceAttentionData::DeviceAttentionData(const AttentionProblem& p, std::uint64_t seed,
                                         const CudaStream& stream)
    : memory_(bytes_of(p)) {
    std::byte* next = memory_.data();
    const auto place = [&](std::size_t bytes) { return std::exchange(next, next + bytes); };
    const auto tensor = [&](const Shape& shape) {
        return TensorView(place(tensor_bytes(shape, p.dtype)), p.dtype, shape,
                          Strides::dense(shape));
    };
    const TensorView q = tensor(p.q_shape()), k = tensor(p.kv_shape()), v = tensor(p.kv_shape());
    std::uint64_t part = 0;
    for (const TensorView& view : {q, k, v})
        fill_normal_on_device(view.data, p.dtype, view.shape.count(), 3 * seed + part++,
                              stream.get());
    const auto read_only = [](const TensorView& t) {
        return ConstTensorView(t.data, t.dtype, t.shape, t.strides);
    };
    tensors_ = {
        .q = read_only(q),
        .k = read_only(k),
        .v = read_only(v),
        .o = tensor(p.q_shape()),
        .lse = {reinterpret_cast<float*>(place(lse_bytes(p))), p.heads_q * p.len_q, p.len_q}};
}

int sets_for_cold_cache(const AttentionProblem& problem) {
    const std::size_t bytes = std::max<std::size_t>(1, DeviceAttentionData::bytes_of(problem));
    const std::size_t sets = (2 * gpu_properties().l2_bytes + bytes - 1) / bytes;
    return static_cast<int>(std::clamp<std::size_t>(sets, 1, 256));
}

// [graph]
TimedGraph::TimedGraph(const CudaStream& stream, LaunchOne launch, std::int64_t at_least,
                       double replay_seconds)
    : stream_(stream) {
    launch(0, stream.get());
    stream.synchronize();
    start_.record(stream);
    launch(0, stream.get());
    stop_.record(stream);
    stream.synchronize();
    const double once = std::max(1e-6, seconds_between(start_, stop_));
    const auto wanted = static_cast<std::int64_t>(std::ceil(replay_seconds / once));
    launches_ = std::clamp<std::int64_t>(wanted, at_least, 256);

    const Graph graph = recorded(stream, [&] {
        for (std::int64_t i = 0; i < launches_; ++i) launch(i, stream.get());
    });
    kernels_ = kernels_in(graph.get());
    cudaGraphExec_t executable = nullptr;
    FA_CUDA_CHECK(cudaGraphInstantiate(&executable, graph.get(), 0));
    executable_.reset(executable);
    replay();  // uploads the graph
}

double TimedGraph::replay() {
    start_.record(stream_);
    FA_CUDA_CHECK(cudaGraphLaunch(executable_.get(), stream_.get()));
    stop_.record(stream_);
    stream_.synchronize();
    return seconds_between(start_, stop_);
}
// [graph]

TimedAttention::TimedAttention(const Implementation& implementation,
                               const AttentionProblem& problem, CacheState cache,
                               std::uint64_t seed)
    : workspace_(supported_workspace_bytes(implementation, problem)),
      sets_(make_sets(problem, cache, seed, stream_)),
      graph_(
          stream_,
          [&implementation, problem, this](std::int64_t index, cudaStream_t stream) {
              const auto set = static_cast<std::size_t>(index) % sets_.size();
              attention(implementation, problem, sets_[set].tensors(), workspace_.bytes(),
                        {.stream = stream});
          },
          static_cast<std::int64_t>(sets_.size())) {}

GpuTiming measure(TimedAttention& timed, int runs) {
    std::vector<double> seconds;
    for (int i = 0; i < runs; ++i) seconds.push_back(timed.replay());
    std::ranges::sort(seconds);
    const std::size_t n = seconds.size();
    const double median = n % 2 == 1 ? seconds[n / 2] : (seconds[n / 2 - 1] + seconds[n / 2]) / 2;
    const auto launches = static_cast<double>(timed.launches());
    return {.median = median / launches,
            .fastest = seconds.front() / launches,
            .runs = runs,
            .launches = timed.launches()};
}

}  // namespace fa
