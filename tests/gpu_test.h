#pragma once
/// @file
/// What tests on the GPU share.

#include <doctest/doctest.h>

#include <cstdio>

#include "common/cuda/device.h"
#include "tests/gpu_tensors.h"

/// Ends a test case where there is no GPU: CTest reports a line "skipped: …" as such, not as
/// passed.
#define SKIP_WITHOUT_GPU()                                        \
    if (!::fa::why_no_gpu().empty()) {                            \
        std::printf("skipped: %s\n", ::fa::why_no_gpu().c_str()); \
        return;                                                   \
    }
