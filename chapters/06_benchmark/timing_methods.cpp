#include "chapters/06_benchmark/timing_methods.h"

#include <fmt/format.h>

#include <algorithm>

#include "chapters/06_benchmark/shapes.h"
#include "common/aligned_buffer.h"
#include "common/attention_data.h"
#include "common/larger.h"
#include "common/text_table.h"

namespace fa {
namespace {

constexpr int RUNS = 20;

template <class T>
std::vector<MethodTime> cpu_methods(const Implementation& implementation,
                                    const AttentionProblem& problem, const CaseOptions& options) {
    const auto median_run = [&](AttentionData<T>& data, int threads) {
        const Launch launch{.threads = threads};
        const AlignedBuffer workspace(implementation.workspace_bytes(problem, launch));
        std::vector<double> seconds;
        for (int i = 0; i <= RUNS; ++i) {
            const Stopwatch stopwatch;
            attention(implementation, problem, data.tensors(), workspace.bytes(), launch);
            seconds.push_back(stopwatch.seconds());
        }
        return seconds;
    };
    AttentionData<T> data(problem, options.seed);
    std::vector<double> seconds = median_run(data, options.threads);
    const double first = seconds.front();
    seconds.erase(seconds.begin());
    std::vector<MethodTime> methods{
        {"the first call: memory is touched for the first time", first},
        {"the slowest of 20 calls", *std::ranges::max_element(seconds)},
        {"the median of 20 calls", median_of(seconds)},
        {"the fastest of 20 calls", *std::ranges::min_element(seconds)},
    };
    seconds = median_run(data, 1);
    seconds.erase(seconds.begin());
    methods.emplace_back("the median with one thread", median_of(seconds));
    for (auto* tensor : {&data.q, &data.k, &data.v}) std::ranges::fill(*tensor, T{});
    seconds = median_run(data, options.threads);
    seconds.erase(seconds.begin());
    methods.emplace_back("the median with zeros for inputs", median_of(seconds));
    return methods;
}

std::vector<MethodTime> methods_of(const Implementation& implementation,
                                   const AttentionProblem& problem, const CaseOptions& options) {
#ifdef FA_CUDA_ENABLED
    if (implementation.device == Device::cuda)
        return cuda_timing_methods(implementation, problem, options.seed);
#endif
    return with_element_type(problem.dtype, [&](auto element) {
        return cpu_methods<decltype(element)>(implementation, problem, options);
    });
}

}  // namespace

void show_timing_methods(Program& program, const Implementation& implementation,
                         const AttentionProblem& base, const std::vector<std::int64_t>& lengths,
                         const CaseOptions& options) {
    print_heading(fmt::format("One kernel, several clocks, measured: {} on {}", implementation.name,
                              ShapeSet{.name = {}, .base = base, .lengths = {}}.title()));
    std::vector<std::vector<MethodTime>> columns;
    std::vector<std::string> headers{"way"};
    auto found = nlohmann::ordered_json::array();
    double worst = 0;
    for (const std::int64_t length : lengths) {
        AttentionProblem p = base;
        p.len_q = p.len_kv = length;
        try {
            worst = larger_or_nan(
                worst, prepare(implementation, p, CacheState::warm, options)->check().share);
        } catch (const Unsupported& refusal) {  // of the problem, or of its tensors
            fmt::print("=> T={} is refused: {}\n", length, refusal.what());
            continue;
        } catch (const OutOfMemory& error) {
            fmt::print("=> T={}: {}\n", length, error.what());
            continue;
        }
        headers.push_back(fmt::format("T={}", length));
        columns.push_back(methods_of(implementation, p, options));
        for (const auto& [way, seconds] : columns.back())
            found.push_back({{"implementation", implementation.name},
                             {"way", way},
                             {"len_q", length},
                             {"ms", 1e3 * seconds}});
    }
    if (columns.empty()) return;
    TextTable table(headers);
    for (std::size_t i = 0; i < columns.front().size(); ++i) {
        std::vector<std::string> cells{columns.front()[i].first};
        for (const auto& column : columns) cells.push_back(human_seconds(column[i].second));
        table.add(std::move(cells));
    }
    fmt::print("{}", table.str());
    program.results.extras["timing_methods"] = std::move(found);
    program.checks.at_most(fmt::format("{}, timed in several ways, is right: error over the bound",
                                       implementation.name),
                           worst, 1);
}

}  // namespace fa
