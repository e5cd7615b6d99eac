#pragma once
/// @file
/// The clock of the GPU's multiprocessors.

#include "common/cuda/stream.h"

namespace fa {

/// The clock in MHz at this moment of the stream, by counting cycles for 100 µs. Right behind a
/// kernel it is the clock that the kernel had: under load the card lowers it to stay within its
/// power, so that a rate means little without it. @throws CudaError
double clock_mhz(const CudaStream& stream);

}  // namespace fa
