#pragma once
/// @file
/// Chapter 3's fast attention with weights that are powers of two.

#include "common/attention.h"

namespace fa {

/// "cpu_fast_exp2": as "cpu_fast", with scale and log2 e folded into the multiply-add that
/// subtracts the maximum. Same tiles, threads and workspace.
extern const Implementation CPU_FAST_EXP2;

}  // namespace fa
