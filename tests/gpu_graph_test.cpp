// Every implementation on the GPU can be captured in a CUDA graph on a stream of its own, and
// replayed with other inputs: it allocates nothing and waits for nothing.

#include <cstring>
#include <memory>
#include <string>

#include "tests/gpu_test.h"

namespace fa {
namespace {

using T = BFloat16;

struct DestroyGraph {
    void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};

bool same_results(const AttentionData<T>& a, const AttentionData<T>& b) {
    return std::memcmp(a.o.data(), b.o.data(), a.o.bytes()) == 0 &&
           std::memcmp(a.lse.data(), b.lse.data(), a.lse.size() * sizeof(float)) == 0;
}

TEST_CASE("gpu: captured in a graph on its own stream, replayed three times with other inputs") {
    SKIP_WITHOUT_GPU();
    const AttentionProblem p{.batch = 2,
                             .heads_q = 4,
                             .heads_kv = 2,
                             .len_q = 130,
                             .len_kv = 201,
                             .head_dim = 64,
                             .dtype = DType::bf16,
                             .causal = true};
    for (const Implementation* implementation : gpu_implementations()) {
        CAPTURE(std::string(implementation->name));
        if (!implementation->why_unsupported(p).empty()) continue;
        TensorsOnDevice<T> device(p);
        const CudaStream stream;
        const Launch launch{.stream = stream.get()};
        const DeviceBuffer workspace(implementation->workspace_bytes(p, launch));
        const auto run = [&] {
            attention(*implementation, p, device.tensors(), workspace.bytes(), launch);
        };

        // The results to expect, one input after another.
        std::vector<AttentionData<T>> expected;
        for (std::uint64_t seed : {1, 2, 3}) {
            expected.emplace_back(p, seed);
            device.upload(expected.back());
            run();
            stream.synchronize();
            device.download(expected.back());
        }

        // In this mode any allocation, of any library, ends the capture with an error.
        FA_CUDA_CHECK(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
        run();
        cudaGraph_t captured = nullptr;
        FA_CUDA_CHECK(cudaStreamEndCapture(stream.get(), &captured));
        const std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph> graph(captured);
        std::size_t nodes = 0;
        FA_CUDA_CHECK(cudaGraphGetNodes(captured, nullptr, &nodes));
        CHECK(nodes > 0);  // all of it went to this stream
        cudaGraphExec_t instantiated = nullptr;
        FA_CUDA_CHECK(cudaGraphInstantiate(&instantiated, captured, 0));
        const std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, DestroyGraph> executable(
            instantiated);

        const std::size_t in_use = device_bytes_in_use();
        for (std::size_t i : {1u, 2u, 0u}) {
            AttentionData<T> result(p, i + 1);
            device.upload(result);
            FA_CUDA_CHECK(cudaGraphLaunch(instantiated, stream.get()));
            stream.synchronize();
            device.download(result);
            CHECK(same_results(result, expected[i]));
            CHECK_FALSE(same_results(result, expected[(i + 1) % 3]));  // the inputs do differ
        }
        CHECK(device_bytes_in_use() == in_use);
    }
}

}  // namespace
}  // namespace fa
