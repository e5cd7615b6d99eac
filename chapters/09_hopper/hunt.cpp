#include "chapters/09_hopper/hunt.h"

#include <fmt/format.h>

#include <stdexcept>

#include "chapters/09_hopper/experiments.h"
#ifdef FA_HOPPER_ENABLED
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "chapters/09_hopper/cuda_hopper.h"
#include "chapters/09_hopper/ladder.h"
#include "chapters/09_hopper/watchdog.h"
#include "common/cuda/timing.h"
#include "common/half.h"
#include "common/random.h"
#include "common/stopwatch.h"
#endif

namespace fa {
#ifdef FA_HOPPER_ENABLED
namespace {

/// What was seen so far.
struct Bag {
    std::int64_t cases = 0, launches = 0, rows = 0;
    std::int64_t differing = 0;  ///< cases whose launches gave different bits
    std::int64_t wrong = 0;      ///< rows beyond the bound
    double worst = 0;            ///< largest error over its bound
    std::string first_differing, first_wrong;
};

/// The n-th case. All odd lengths come before any comes again.
struct Case {
    const Implementation* implementation;
    AttentionProblem problem;
    std::string text;
};

Case case_of(std::int64_t n, Random& random) {
    const auto below = [&](std::uint64_t bound) {
        return static_cast<std::int64_t>(random.below(bound));
    };
    static constexpr std::array STEPS{&CUDA_WGMMA,      &CUDA_PRODUCER,   &CUDA_OVERLAP,
                                      &CUDA_PING_PONG,  &CUDA_WARPGROUPS, &CUDA_DIAGONAL,
                                      &CUDA_PERSISTENT, &CUDA_HOPPER_LAZY};
    const bool a_step = n % 3 == 2;
    AttentionProblem p;
    p.len_q = 1 + 2 * (n % 1025);
    p.len_kv = n % 4 == 3 ? 1 + below(2049) : p.len_q;
    p.causal = below(2) == 0;
    p.head_dim = !a_step && below(2) == 0 ? 128 : 64;
    p.batch = 1 + below(3);
    p.heads_q = p.heads_kv = 1 + below(6);
    p.dtype = below(4) == 0 ? DType::f16 : DType::bf16;
    const Implementation* implementation =
        a_step ? STEPS[static_cast<std::size_t>(below(STEPS.size()))] : &CUDA_HOPPER;
    return {implementation, p,
            fmt::format("case {}, {}, {}", n, implementation->name, describe(p))};
}

/// O and LSE as they are on the device.
std::vector<std::byte> results_of(const AttentionProblem& p, const AttentionTensors& t) {
    const std::size_t o_bytes = static_cast<std::size_t>(p.q_shape().count()) * 2;
    const std::size_t lse_bytes =
        static_cast<std::size_t>(p.batch * p.heads_q * p.len_q) * sizeof(float);
    std::vector<std::byte> here(o_bytes + lse_bytes);
    FA_CUDA_CHECK(cudaMemcpy(here.data(), t.o.data, o_bytes, cudaMemcpyDeviceToHost));
    FA_CUDA_CHECK(cudaMemcpy(here.data() + o_bytes, t.lse.data, lse_bytes, cudaMemcpyDeviceToHost));
    return here;
}

/// Tokens of one head as fp64.
template <class T>
std::vector<double> tokens_of(const ConstTensorView& view, std::int64_t head, std::int64_t first,
                              std::int64_t count, const AttentionProblem& p, std::int64_t length) {
    std::vector<T> bits(static_cast<std::size_t>(count * p.head_dim));
    const T* from = static_cast<const T*>(view.data) + (head * length + first) * p.head_dim;
    FA_CUDA_CHECK(cudaMemcpy(bits.data(), from, bits.size() * sizeof(T), cudaMemcpyDeviceToHost));
    std::vector<double> numbers(bits.size());
    std::ranges::transform(bits, numbers.begin(),
                           [](T x) { return static_cast<double>(static_cast<float>(x)); });
    return numbers;
}

/// Compares one row of O with fp64. Weights and O are rounded to 16 bits: each may cost
/// roundoff · Σ weight · |v|.
template <class T>
void check_row(const AttentionProblem& p, const AttentionTensors& t, std::int64_t head,
               std::int64_t query, const std::string& text, Bag& bag) {
    const auto d = static_cast<std::size_t>(p.head_dim);
    const auto keys = static_cast<std::size_t>(p.visible_keys(query));
    const auto q = tokens_of<T>(t.q, head, query, 1, p, p.len_q);
    const ConstTensorView o_view{t.o.data, t.o.dtype, t.o.shape, t.o.strides};
    const auto o = tokens_of<T>(o_view, head, query, 1, p, p.len_q);
    std::vector<double> sum(d, 0.0), sum_of_sizes(d, 0.0);
    double all = 0;
    if (keys > 0) {
        const auto k = tokens_of<T>(t.k, head, 0, static_cast<std::int64_t>(keys), p, p.len_kv);
        const auto v = tokens_of<T>(t.v, head, 0, static_cast<std::int64_t>(keys), p, p.len_kv);
        std::vector<double> scores(keys);
        for (std::size_t j = 0; j < keys; ++j) {
            double score = 0;
            for (std::size_t c = 0; c < d; ++c) score += q[c] * k[j * d + c];
            scores[j] = score * static_cast<double>(p.effective_scale());
        }
        const double most = *std::ranges::max_element(scores);
        for (std::size_t j = 0; j < keys; ++j) {
            const double weight = std::exp(scores[j] - most);
            all += weight;
            for (std::size_t c = 0; c < d; ++c) {
                sum[c] += weight * v[j * d + c];
                sum_of_sizes[c] += weight * std::fabs(v[j * d + c]);
            }
        }
    }
    ++bag.rows;
    bool right = true;
    for (std::size_t c = 0; c < d; ++c) {
        const double expected = keys > 0 ? sum[c] / all : 0;
        const double bound =
            2.5 * roundoff(p.dtype) * (keys > 0 ? sum_of_sizes[c] / all : 0) + 1e-5;
        const double share = std::fabs(o[c] - expected) / bound;
        right &= share <= 1;
        if (!(share <= bag.worst)) bag.worst = share;
    }
    if (right) return;
    if (bag.wrong++ == 0) bag.first_wrong = fmt::format("{}, head {}, query {}", text, head, query);
}

void run_case(std::int64_t n, const Case& c, Random& random, std::uint64_t seed,
              const CudaStream& stream, Bag& bag) {
    constexpr int LAUNCHES = 8, ROWS = 2;
    const AttentionProblem& p = c.problem;
    const DeviceAttentionData data(p, seed + static_cast<std::uint64_t>(n), stream);
    const AttentionTensors& t = data.tensors();
    const DeviceBuffer workspace(
        std::max<std::size_t>(c.implementation->workspace_bytes(p, {}), 256));
    FA_CUDA_CHECK(cudaMemsetAsync(t.o.data, 0xff, static_cast<std::size_t>(p.q_shape().count()) * 2,
                                  stream.get()));
    const auto launch = [&] {
        attention(*c.implementation, p, t, workspace.bytes(), {.stream = stream.get()});
        ++bag.launches;
    };
    launch();
    stream.synchronize();
    const std::vector<std::byte> first = results_of(p, t);
    for (int i = 1; i < LAUNCHES; ++i) launch();
    stream.synchronize();
    if (results_of(p, t) != first && bag.differing++ == 0) bag.first_differing = c.text;
    for (int i = 0; i < ROWS; ++i) {
        const auto below = [&](std::int64_t bound) {
            return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound)));
        };
        const std::int64_t head = below(p.batch * p.heads_q), query = below(p.len_q);
        if (p.dtype == DType::f16)
            check_row<Float16>(p, t, head, query, c.text, bag);
        else
            check_row<BFloat16>(p, t, head, query, c.text, bag);
    }
    ++bag.cases;
}

}  // namespace
#endif

void hunt(Program& program, [[maybe_unused]] double seconds) {
    if (!hopper_is_here(program))
        throw std::runtime_error("--hunt needs a GPU of compute capability 9.0");
#ifdef FA_HOPPER_ENABLED
    print_heading("Hunt, measured");
    Watchdog watchdog("ch09_hopper", std::chrono::seconds(20));
    const CudaStream stream;
    Random random(program.seed);
    Bag bag;
    const Stopwatch stopwatch;
    for (std::int64_t n = 0; stopwatch.seconds() < seconds; ++n) {
        const Case c = case_of(n, random);
        watchdog.begin(c.text);
        run_case(n, c, random, program.seed, stream, bag);
    }
    fmt::print("{} cases, {} launches, {} rows against fp64, no hang.\n", bag.cases, bag.launches,
               bag.rows);
    if (bag.differing > 0) fmt::print("Other bits first: {}\n", bag.first_differing);
    if (bag.wrong > 0) fmt::print("A wrong row first: {}\n", bag.first_wrong);
    program.results.extras["hunt"] = {{"cases", bag.cases},
                                      {"launches", bag.launches},
                                      {"rows", bag.rows},
                                      {"differing", bag.differing},
                                      {"wrong", bag.wrong}};
    program.checks.at_least("cases", static_cast<double>(bag.cases), 1);
    program.checks.equal("cases whose launches gave different bits",
                         static_cast<double>(bag.differing), 0);
    program.checks.equal("rows beyond their bound", static_cast<double>(bag.wrong), 0);
    program.checks.at_most("largest error over its bound", bag.worst, 1);
#endif
}

}  // namespace fa
