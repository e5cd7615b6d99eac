#pragma once
/// @file
/// Warm or cold: half of what a time means.

#include <string_view>

namespace fa {

/// Where a timed run finds its inputs.
enum class CacheState {
    warm,  ///< in the last-level cache, as far as they fit: the same buffers run after run
    cold   ///< in memory: buffers in turn, more of them than the cache holds
};

/// "warm" or "cold".
constexpr std::string_view name_of(CacheState cache) {
    return cache == CacheState::warm ? "warm" : "cold";
}

}  // namespace fa
