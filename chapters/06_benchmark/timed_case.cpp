#include "chapters/06_benchmark/timed_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>

#include "common/aligned_buffer.h"
#include "common/attention_data.h"
#include "common/cost_model.h"
#include "common/memory_meter.h"

namespace fa {
namespace {

/// Refuses before anything is allocated: Linux gives memory it does not have, and ends the program
/// when that is used.
void require_memory(double needed, double limit) {
    const double free = limit > 0 ? std::min(limit, free_memory()) : free_memory();
    if (needed > free)
        throw OutOfMemory(
            fmt::format("out of memory: {:.0f} bytes asked for, {:.0f} free", needed, free));
}

/// The same buffers in every run; caches are warm as far as the inputs fit.
template <class T>
class CpuCase final : public TimedCase {
  public:
    CpuCase(const Implementation& implementation, const AttentionProblem& problem,
            const CaseOptions& options)
        : implementation_(implementation),
          problem_(problem),
          launch_{.threads = options.threads},
          seed_(options.seed),
          data_(problem, options.seed) {
        run_once(AlignedBuffer(implementation.workspace_bytes(problem, launch_)));
        const MemoryMeter meter;
        workspace_ = AlignedBuffer(implementation.workspace_bytes(problem, launch_));
        run_once(workspace_);
        scratch_bytes_ = MemoryMeter::active() ? meter.peak() : workspace_.bytes().size();
    }

    double run() override {
        const Stopwatch stopwatch;
        run_once(workspace_);
        return stopwatch.seconds();
    }
    std::int64_t calls() const override { return 1; }
    std::size_t scratch_bytes() const override { return scratch_bytes_; }
    SpotCheck check() override {
        const CopyToHost copy = [](void* to, const void* from, std::size_t bytes) {
            if (bytes > 0) std::memcpy(to, from, bytes);
        };
        return spot_check(problem_, data_.tensors(), copy, seed_);
    }

  private:
    void run_once(const AlignedBuffer& workspace) {
        attention(implementation_, problem_, data_.tensors(), workspace.bytes(), launch_);
    }

    const Implementation& implementation_;
    AttentionProblem problem_;
    Launch launch_;
    std::uint64_t seed_;
    AttentionData<T> data_;
    AlignedBuffer workspace_;
    std::size_t scratch_bytes_ = 0;
};

std::unique_ptr<TimedCase> prepare_cpu(const Implementation& implementation,
                                       const AttentionProblem& problem,
                                       const CaseOptions& options) {
    if (const std::string reason = implementation.why_unsupported(problem); !reason.empty())
        throw Unsupported(reason);
    const Launch launch{.threads = options.threads};
    require_memory(tensor_bytes(problem) +
                       static_cast<double>(implementation.workspace_bytes(problem, launch)),
                   options.memory_limit);
    return with_element_type(problem.dtype, [&](auto element) -> std::unique_ptr<TimedCase> {
        return std::make_unique<CpuCase<decltype(element)>>(implementation, problem, options);
    });
}

}  // namespace

std::unique_ptr<TimedCase> prepare(const Implementation& implementation,
                                   const AttentionProblem& problem, CacheState cache,
                                   const CaseOptions& options) {
    validate(problem);
#ifdef FA_CUDA_ENABLED
    if (implementation.device == Device::cuda)
        return prepare_cuda(implementation, problem, cache, options);
#endif
    if (implementation.device == Device::cpu && cache == CacheState::cold)
        throw std::invalid_argument("CPU implementations are timed with warm caches only");
    return prepare_cpu(implementation, problem, options);
}

double tensor_bytes(const AttentionProblem& p) {
    const auto rows = static_cast<double>(p.batch * p.heads_q) * static_cast<double>(p.len_q);
    return qkvo_bytes(p) + rows * sizeof(float);
}

double free_memory() {
    std::ifstream file("/proc/meminfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("MemAvailable:")) return 1024 * std::stod(line.substr(13));
    throw std::runtime_error("/proc/meminfo does not say how much memory is available");
}

Timing time_case(TimedCase& timed, int runs) {
    std::vector<double> seconds;
    for (int i = 0; i < runs; ++i)
        seconds.push_back(timed.run() / static_cast<double>(timed.calls()));
    return {
        .median = median_of(seconds), .fastest = *std::ranges::min_element(seconds), .runs = runs};
}

double median_of(std::vector<double> values) {
    if (values.empty()) throw std::invalid_argument("no values have no median");
    std::ranges::sort(values);
    const std::size_t n = values.size();
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

}  // namespace fa
