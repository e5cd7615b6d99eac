#pragma once
/// @file
/// The one list of implementations. Tests, accuracy tables and the GPT-2 swap iterate over it: a
/// kernel that has an entry here has all three.

#include <span>
#include <string_view>

#include "common/attention.h"

namespace fa {

/// All implementations of this build, in the order of the chapters.
std::span<const Implementation> all_implementations();

/// The entry of that name. @throws std::invalid_argument listing the names there are
const Implementation& implementation_named(std::string_view name);

}  // namespace fa
