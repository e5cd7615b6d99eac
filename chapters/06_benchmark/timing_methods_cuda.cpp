#include "chapters/06_benchmark/timing_methods.h"
#include "common/cuda/check.h"
#include "common/cuda/timing.h"

namespace fa {
namespace {

constexpr int RUNS = 20;

template <class Sample>
double median_sample(Sample&& sample) {
    std::vector<double> seconds;
    for (int i = 0; i < RUNS; ++i) seconds.push_back(sample());
    return median_of(seconds);
}

/// Seconds per call of launches one by one, by events around `count` of them.
double by_events(const CudaStream& stream, int count, const std::function<void()>& launch) {
    CudaEvent start, stop;
    return median_sample([&] {
        start.record(stream);
        for (int i = 0; i < count; ++i) launch();
        stop.record(stream);
        stream.synchronize();
        return seconds_between(start, stop) / count;
    });
}

double by_graph(const Implementation& implementation, const AttentionProblem& problem,
                CacheState cache, std::uint64_t seed) {
    TimedAttention timed(implementation, problem, cache, seed);
    return measure(timed, RUNS).median;
}

}  // namespace

std::vector<MethodTime> cuda_timing_methods(const Implementation& implementation,
                                            const AttentionProblem& problem, std::uint64_t seed) {
    const CudaStream stream;
    const DeviceAttentionData data(problem, seed, stream);
    const DeviceBuffer workspace(implementation.workspace_bytes(problem, {}));
    const std::function<void()> launch = [&] {
        attention(implementation, problem, data.tensors(), workspace.bytes(),
                  {.stream = stream.get()});
    };
    launch();
    stream.synchronize();

    std::vector<MethodTime> methods;
    methods.emplace_back("host clock around the call, not waiting: the launch alone",
                         median_sample([&] {
                             const Stopwatch stopwatch;
                             launch();
                             const double seconds = stopwatch.seconds();
                             stream.synchronize();
                             return seconds;
                         }));
    methods.emplace_back("host clock around the call, waiting for the GPU", median_sample([&] {
                             const Stopwatch stopwatch;
                             launch();
                             stream.synchronize();
                             return stopwatch.seconds();
                         }));
    methods.emplace_back("events around one launch", by_events(stream, 1, launch));
    methods.emplace_back("events around 20 launches", by_events(stream, 20, launch));
    methods.emplace_back("events around a graph of launches, warm L2",
                         by_graph(implementation, problem, CacheState::warm, seed));
    methods.emplace_back("events around a graph of launches, cold L2",
                         by_graph(implementation, problem, CacheState::cold, seed));

    for (const ConstTensorView& view : {data.tensors().q, data.tensors().k, data.tensors().v}) {
        const auto bytes = static_cast<std::size_t>(view.shape.count()) * size_of(view.dtype);
        FA_CUDA_CHECK(cudaMemsetAsync(const_cast<void*>(view.data), 0, bytes, stream.get()));
    }
    TimedGraph zeros(stream, [&](std::int64_t, cudaStream_t) { launch(); });
    methods.emplace_back(
        "a graph, warm, zeros for inputs",
        median_sample([&] { return zeros.replay(); }) / static_cast<double>(zeros.launches()));
    return methods;
}

}  // namespace fa
