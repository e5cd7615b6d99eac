#pragma once
/// @file
/// The suite that every implementation on the list must pass (docs/semantics.md says what it holds
/// them to, docs/testing.md how). The test program runs it on all implementations, the mutation
/// runner on deliberately broken ones.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/attention.h"

namespace fa::suite {

/// What went wrong, one sentence each. Empty: all well.
using Failures = std::vector<std::string>;

/// One named check of the suite.
struct SuiteCheck {
    std::string_view name;  ///< unique, e.g. "masked_keys"
    std::string_view what;  ///< the property, in one line
    Failures (*run)(const Implementation&);
};

/// All checks, the quick and sharp ones first.
std::span<const SuiteCheck> attention_suite();

/// The check of that name. @throws std::invalid_argument
const SuiteCheck& check_named(std::string_view name);

/// Runs a check; an exception that comes out of it becomes a failure.
Failures run_check(const SuiteCheck& check, const Implementation& implementation);

}  // namespace fa::suite
