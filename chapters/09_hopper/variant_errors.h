#pragma once
/// @file
/// Errors of the variants of the last kernel on the executor.

#include <functional>
#include <string_view>

#include "common/attention.h"

namespace fa {

/// Largest differences from fp64; NaN if one is.
struct VariantErrors {
    std::string_view name;
    double o = 0, lse = 0;
    double o_bound = 0, lse_bound = 0;
};

/// Runs each variant for the problem's channels on random inputs in bf16 and calls `use`. The
/// bounds: twice the error of the naive attention in bf16 and two roundings for O; 1e-5 for LSE,
/// and 1e-4, what the polynomial errs by, if it is used.
void for_each_variant_error(const AttentionProblem& problem, std::uint64_t seed,
                            const std::function<void(const VariantErrors&)>& use);

}  // namespace fa
