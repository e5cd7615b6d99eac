#pragma once
/// @file
/// The length from which a fused kernel beats the naive way.

#include <optional>
#include <string>
#include <vector>

#include "chapters/06_benchmark/timed_case.h"
#include "common/program.h"

namespace fa {

/// One length at which both were timed.
struct Pair {
    std::int64_t length = 0;
    double naive = 0, fused = 0;  ///< seconds
};

/// The length at which the fused time meets the naive one for the last time, so that the fused way
/// is faster from there on: interpolated between the two lengths around it, straight in the
/// logarithms of length and of the ratio of the times.
/// @param pairs by rising length
/// @return nothing if the fused way is slower at the longest length, or faster at all
std::optional<double> crossover(const std::vector<Pair>& pairs);

/// What that comes to in words: from where on the fused way is faster or slower, and up to where it
/// was tried.
std::string verdict(const std::vector<Pair>& pairs);

/// The share of a causal or full problem's computed scores that count, if tiles of these sizes are
/// computed whole and those without a visible score are skipped. 1 if there are none.
double tile_fill(const AttentionProblem& problem, std::int64_t block_q, std::int64_t block_kv);

/// Times a naive implementation and fused ones over lengths and prints where they cross, with what
/// explains it. What an implementation refuses is told, and not judged.
/// @param problem all but the lengths
/// @param lengths two at least: a crossing lies between two
void show_crossover(Program& program, const AttentionProblem& problem,
                    const std::vector<std::int64_t>& lengths, const Implementation& naive,
                    const std::vector<const Implementation*>& fused, const CaseOptions& options);

}  // namespace fa
