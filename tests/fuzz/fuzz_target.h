#pragma once
/// @file
/// What a fuzz target is made of. The same source is linked with libFuzzer, which searches for
/// inputs that break it, and with replay_main.cpp, which tries a fixed set of inputs under any
/// compiler.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

/// Hands `size` bytes to the reader under test; libFuzzer's entry point. An exception that the
/// reader documents is a right answer; anything that should not be ends in require(), or in a
/// sanitizer.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Inputs to start from: valid ones, and such as lie near the border.
std::vector<std::string> fuzz_seeds();

namespace fa::testing {

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

/// Stops the program if `holds` is false, in every kind of build.
inline void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

}  // namespace fa::testing
