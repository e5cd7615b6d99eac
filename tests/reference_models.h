#pragma once
/// @file
/// Files too large for the tree, which some tests use where they are present.

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

namespace fa::testing {

/// `name` inside the folder that the environment variable FA_REFERENCE_MODELS names. Without it,
/// says on a line of its own that the test is skipped, which CTest reports as such; if the variable
/// is set but the file is missing, that is no reason to skip: the caller's opening of the file will
/// fail.
inline std::optional<std::filesystem::path> reference_model(const std::string& name) {
    const char* folder = std::getenv("FA_REFERENCE_MODELS");
    if (folder != nullptr && *folder != '\0') return std::filesystem::path(folder) / name;
    std::cout << "skipped: needs " << name << " in the folder FA_REFERENCE_MODELS" << std::endl;
    return std::nullopt;
}

}  // namespace fa::testing
