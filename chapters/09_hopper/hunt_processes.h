#pragma once
/// @file
/// One process of a hunt, seen from another.

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "chapters/09_hopper/hunt.h"

namespace fa {

/// Runs a command that hunts and writes its results to `json`, without its standard output, and
/// waits.
/// @param limit after which it is ended by SIGKILL
/// @return what it has seen. It counts as one failed process if it does not exit with status 0 or
///         leaves no results; `first_fault` then says how it ended, if it says nothing itself
/// @throws std::system_error if it cannot be started; std::runtime_error if it cannot be ended
HuntBag hunt_in_process(const std::vector<std::string>& command, const std::filesystem::path& json,
                        std::chrono::milliseconds limit);

}  // namespace fa
