#pragma once
/// @file
/// The tiles in which an implementation works.

#include <optional>

#include "common/attention.h"
#include "common/cost_model.h"

namespace fa {

/// Rows of Q and of K/V that an implementation has on chip at one time for a problem it supports;
/// nothing for one that works without tiles.
std::optional<TileSize> tiles_of(const Implementation& implementation,
                                 const AttentionProblem& problem);

}  // namespace fa
