#pragma once
/// @file
/// A hunt for rare faults on the GPU: hangs, results that differ from launch to launch, wrong rows.

#include <cstdint>

#include <nlohmann/json_fwd.hpp>

#include "common/program.h"

namespace fa {

/// What a hunt has seen.
struct HuntBag {
    std::int64_t processes = 0, failed_processes = 0;
    std::int64_t cases = 0, launches = 0, delayed_launches = 0, graph_launches = 0;
    std::int64_t rows = 0;       ///< compared with fp64
    std::int64_t differing = 0;  ///< cases whose launches gave different bits
    std::int64_t wrong = 0;      ///< rows beyond the bound
    double worst = 0;            ///< largest error over its bound
    std::string first_fault;     ///< the first of all that went wrong, in words

    /// Adds what another process has seen.
    HuntBag& operator+=(const HuntBag& other);
    nlohmann::ordered_json json() const;
    /// @throws nlohmann::json::exception if a number is not there
    static HuntBag from_json(const nlohmann::ordered_json& json);
};

/// Prints what was seen, leaves it in the results as "hunt", and adds its checks.
void report_hunt(Program& program, const HuntBag& bag);

/// Launches the kernels for some seconds: hunt_case() after hunt_case(), each in memory of its own,
/// freshly filled, O and LSE overwritten before each launch. All launches of a case must give the
/// same bits, and some rows are compared with fp64. A case that does not end within 20 s ends the
/// process with the case on stderr and exit status 1.
/// @throws std::runtime_error if no GPU of compute capability 9.0 is used
void hunt(Program& program, double seconds);

/// Hunts in `processes` processes, one after the other, each with a seed of its own and for
/// `seconds`. One that hangs, crashes or finds something is counted, and the next one starts all
/// the same.
/// @throws std::runtime_error if no process can be started
void hunt_in_processes(Program& program, double seconds, int processes);

}  // namespace fa
