#pragma once
/// @file
/// One implementation on one problem, made ready to be timed, on whatever device it runs.

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "chapters/06_benchmark/errors.h"
#include "common/attention.h"
#include "common/cache_state.h"
#include "common/stopwatch.h"

namespace fa {

/// The memory does not suffice: the bytes asked for and the bytes free are in the message.
class OutOfMemory : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// How to prepare.
struct CaseOptions {
    std::uint64_t seed = 1;
    int threads = 0;           ///< of CPU implementations; 0: all
    double memory_limit = 0;   ///< bytes for inputs, outputs and scratch; 0: what the device has
    double power_seconds = 0;  ///< of more runs before the timed ones, for the power; 0: none
    double rest_seconds = 0;   ///< of nothing before each repetition; 0: none
};

/// Inputs, outputs and scratch of one implementation on one problem. Running it gives a time.
class TimedCase {
  public:
    virtual ~TimedCase() = default;

    /// Runs calls() calls one behind the other. @return the seconds of all of them together
    virtual double run() = 0;
    virtual std::int64_t calls() const = 0;

    /// Bytes that a call holds beside Q, K, V, O and LSE.
    virtual std::size_t scratch_bytes() const = 0;
    /// Kernels that a call launches; 0 where there are none.
    virtual std::int64_t kernels() const { return 0; }
    /// The clock of the processor behind the last run, in MHz; 0 if unknown.
    virtual double clock_mhz() { return 0; }
    /// Mean power of the device in watts over `seconds` of more runs; empty if unknown.
    virtual std::optional<double> power_w(double /*seconds*/) { return std::nullopt; }
    /// Compares rows of what the runs computed with fp64.
    virtual SpotCheck check() = 0;
};

/// Prepares and runs once, so that the first timed run is like the others.
/// @throws Unsupported with the implementation's reason; OutOfMemory
std::unique_ptr<TimedCase> prepare(const Implementation& implementation,
                                   const AttentionProblem& problem, CacheState cache,
                                   const CaseOptions& options);

/// Bytes of Q, K, V, O and LSE.
double tensor_bytes(const AttentionProblem& problem);

/// Memory of this machine that a program may still take, in bytes.
double free_memory();

/// Runs a prepared case `runs` times. @return seconds per call
Timing time_case(TimedCase& timed, int runs);

/// The middle of the values: their mean if there are two of it. @throws std::invalid_argument if
/// empty
double median_of(std::vector<double> values);

#ifdef FA_CUDA_ENABLED
/// prepare() for CUDA implementations.
std::unique_ptr<TimedCase> prepare_cuda(const Implementation& implementation,
                                        const AttentionProblem& problem, CacheState cache,
                                        const CaseOptions& options);
#endif

}  // namespace fa
