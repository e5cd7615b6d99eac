#include "chapters/06_benchmark/timed_case.h"
#include "common/cuda/check.h"
#include "common/cuda/clock.h"
#include "common/cuda/power.h"
#include "common/cuda/timing.h"

namespace fa {
namespace {

class CudaCase final : public TimedCase {
  public:
    CudaCase(const Implementation& implementation, const AttentionProblem& problem,
             CacheState cache, std::uint64_t seed)
        : problem_(problem), seed_(seed), timed_(implementation, problem, cache, seed) {}

    double run() override { return timed_.replay(); }
    std::int64_t calls() const override { return timed_.launches(); }
    std::size_t scratch_bytes() const override { return timed_.workspace_bytes(); }
    std::int64_t kernels() const override { return timed_.kernels_per_launch(); }
    double clock_mhz() override {
        timed_.replay();
        return fa::clock_mhz(timed_.stream());
    }
    std::optional<double> power_w(double seconds) override {
        return gpu_power([&] { timed_.replay(); }, seconds);
    }
    SpotCheck check() override {
        const CopyToHost copy = [](void* to, const void* from, std::size_t bytes) {
            FA_CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
        };
        return spot_check(problem_, timed_.tensors(), copy, seed_);
    }

  private:
    AttentionProblem problem_;
    std::uint64_t seed_;
    TimedAttention timed_;
};

}  // namespace

std::unique_ptr<TimedCase> prepare_cuda(const Implementation& implementation,
                                        const AttentionProblem& problem, CacheState cache,
                                        const CaseOptions& options) {
    set_device_memory_limit(static_cast<std::size_t>(options.memory_limit));
    try {
        return std::make_unique<CudaCase>(implementation, problem, cache, options.seed);
    } catch (const OutOfDeviceMemory& error) {
        throw OutOfMemory(error.what());
    }
}

}  // namespace fa
