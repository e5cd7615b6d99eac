#pragma once
/// @file
/// Solution of the exercise on banks.
///
/// The banks work side by side, so the access takes as long as the bank that has to give out the
/// most *different* words: lanes that want the same word are served together. A column of a tile
/// whose rows are 64 words long is 32 words of one bank, 32 clocks; with one word of padding each
/// row begins a bank further, and the column takes one.

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace fa::exercise {

inline constexpr std::uint32_t BANKS = 32;

/// Clocks for one access of a warp.
inline int clocks(std::span<const std::uint32_t> words) {
    std::vector<std::set<std::uint32_t>> wanted(BANKS);
    for (const std::uint32_t word : words) wanted[word % BANKS].insert(word);
    std::size_t most = 0;
    for (const std::set<std::uint32_t>& bank : wanted) most = std::max(most, bank.size());
    return static_cast<int>(most);
}

}  // namespace fa::exercise
