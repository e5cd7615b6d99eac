#pragma once
/// @file
/// Running an implementation of any device on data that lie on the host.

#include "common/attention.h"

namespace fa {

/// Computes O and LSE of dense host tensors, on the device of the implementation: inputs are copied
/// there and outputs back. Scratch memory is allocated for the call.
/// @param threads of a CPU or of the executor; 0: as many as OpenMP offers
/// @throws what attention() throws; OutOfDeviceMemory
void run_from_host(const Implementation& implementation, const AttentionProblem& problem,
                   const AttentionTensors& tensors, int threads = 0);

}  // namespace fa
