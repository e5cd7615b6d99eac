#pragma once
/// @file
/// Problems with their inputs, gold and error bounds, computed once per process, and the
/// comparison.
///
/// The error rule. An implementation in type X may err at most twice as much as the naive attention
/// in type X errs against fp64, plus a floor. Errors are measured, for every 32 query rows, against
/// the largest |O| among them, so that the large outputs of rows with few keys do not hide the
/// errors of the others. The floor is 2u_X + √n·u: two roundings to X, and what a sum of n keys in
/// fp32 may lose in any order (u = 2^-24; a random walk of n roundings). For LSE it is (2 + √n +
/// √d)·u, times max(1, |LSE|): d products make a score.
///
/// Over the rule stands a cap that does not depend on the naive implementation, which would
/// otherwise be its own judge: a score carries a few roundings of its own size, and an error δ in
/// the scores moves O by at most 2δ·max|V|.

#include <cstdint>
#include <string>
#include <vector>

#include "common/attention.h"
#include "common/reference_attention.h"
#include "tests/attention_suite.h"
#include "tests/suite_run.h"

namespace fa::suite {

/// What the inputs look like. V is standard normal unless said otherwise.
enum class Pattern {
    normal,   ///< Q, K standard normal
    rising,   ///< scores rise from −10⁴ to 10⁴ along the keys: every tile has a new maximum
    falling,  ///< scores fall from 10⁴ to −10⁴: the first tile has it all
    huge_rising,    ///< as rising, from −10³⁷ to 10³⁷: no finite number stands for −∞
    huge_falling,   ///< the same the other way round
    spikes,         ///< normal, with five keys whose scores are about +300
    very_negative,  ///< scores about −10⁴, no two rows alike
    equal,          ///< all scores 10⁴: every weight is 1/n
    last_channel,   ///< Q and K nonzero in their last channel alone, V[j, c] = j + c/1000
};
std::string_view name_of(Pattern pattern);

/// A problem and its inputs.
struct SuiteCase {
    AttentionProblem problem;
    Pattern pattern = Pattern::normal;
    std::uint64_t seed = 1;
};
std::string describe(const SuiteCase& c);

/// Query rows that are judged together.
constexpr std::int64_t ROWS_PER_GROUP = 32;

/// The largest permitted error of each group of rows.
struct Bounds {
    std::vector<double> o, lse;
};

/// Everything known about a case.
struct Prepared {
    Inputs inputs;
    ReferenceResult gold;
    Bounds bounds;           ///< for implementations that keep scores in fp32
    double score_bound = 0;  ///< no finite |score| is larger: |scale|·max‖q‖·max‖k‖
    double max_v = 0;        ///< the largest |V|
    bool extreme = false;  ///< the cap alone is the bound: scores of 10⁴ in fp32 are off by 10⁻³,
                           ///< one way here and another there, and no yardstick for each other
};

/// The inputs of a case, seeded.
Inputs make_inputs(const SuiteCase& c);

/// Gold and bounds of inputs that belong to no case.
Prepared prepare(const AttentionProblem& problem, Inputs inputs, bool extreme = false);

/// Inputs, gold and bounds of a case, from memory if they were asked for before.
const Prepared& prepared(const SuiteCase& c);

/// The gold alone.
ReferenceResult gold_of(const AttentionProblem& problem, const Inputs& inputs);

/// The bounds to hold an implementation to: those known, widened if it is known to round its scores
/// to 16 bits (one entry of the list does so on purpose).
Bounds bounds_for(const Implementation& implementation, const AttentionProblem& problem,
                  const Prepared& known);

/// Compares all rows and all channels of O, and LSE, with the gold, and appends what is wrong.
/// Where the gold is NaN the result must be NaN; where it is infinite, equal.
void compare(Failures& failures, const std::string& label, const AttentionProblem& problem,
             const Run& run, const ReferenceResult& gold, const Bounds& bounds);

/// Compares a run with the gold, within the bounds for this implementation.
void check_prepared(Failures& failures, const Implementation& implementation,
                    const std::string& label, const AttentionProblem& problem,
                    const Prepared& known, const Run& run);

/// Runs a case and compares: the body of most checks. Does nothing if the case is not supported.
void check_case(Failures& failures, const Implementation& implementation, const SuiteCase& c,
                const RunOptions& options = {});

/// True if the implementation takes the problem.
bool supports(const Implementation& implementation, const AttentionProblem& problem);

/// The element types that an implementation takes at d = 64, full and causal.
/// @throws std::runtime_error if there is none: a suite that checks nothing must not pass
std::vector<DType> dtypes_of(const Implementation& implementation);

/// The same for the long checks: one type, bf16, on the executor. It takes a kernel's time some
/// thousand times over, and the kernels that it runs do the same arithmetic for every type; what
/// differs, loads and stores, the other checks see in every type.
std::vector<DType> dtypes_of_long_check(const Implementation& implementation);

/// The longest sequences to try: on the executor a dozen tiles, elsewhere any.
std::int64_t longest_length(const Implementation& implementation);

/// `value` rounded to the type.
float rounded(float value, DType dtype);

/// "cpu_naive B1 H1/1 … rising, packed QKV, 2 threads": the head of a failure message.
std::string label_of(const Implementation& implementation, const std::string& what,
                     const RunOptions& options);

}  // namespace fa::suite
