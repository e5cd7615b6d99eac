#pragma once
/// @file
/// What the tests of the executor share.

#include <functional>

#include "common/executor/executor.h"

namespace fa {

/// Runs one block of a kernel.
inline executor::Counters run_block(unsigned threads, std::size_t shared_bytes,
                                    const std::function<void()>& kernel,
                                    const executor::Options& options = {}) {
    return executor::run({1}, {threads}, shared_bytes, kernel, options);
}

}  // namespace fa
