#pragma once
/// @file
/// The checks of the suite, by subject. What each is good for stands in the list in
/// attention_suite.cpp; which statement of the semantics it tests, in docs/semantics.md.

#include "tests/attention_suite.h"

namespace fa::suite {

// suite_lengths.cpp
Failures check_lengths(const Implementation&);
Failures check_unequal_lengths(const Implementation&);
Failures check_head_dims(const Implementation&);
Failures check_last_channel(const Implementation&);

// suite_values.cpp
Failures check_known_values(const Implementation&);
Failures check_causal_means(const Implementation&);
Failures check_scale(const Implementation&);

// suite_rows.cpp
Failures check_rows_without_keys(const Implementation&);
Failures check_minus_infinity_scores(const Implementation&);

// suite_nan.cpp
Failures check_masked_keys(const Implementation&);
Failures check_visible_nan(const Implementation&);

// suite_memory_use.cpp
Failures check_poison(const Implementation&);
Failures check_layouts(const Implementation&);
Failures check_far_apart(const Implementation&);
Failures check_heap(const Implementation&);

// suite_extremes.cpp
Failures check_extreme_scores(const Implementation&);

// suite_heads.cpp
Failures check_grouped_heads(const Implementation&);
Failures check_many_heads(const Implementation&);

// suite_repeat.cpp
Failures check_repeatable(const Implementation&);
Failures check_threads(const Implementation&);

// suite_door.cpp
Failures check_door(const Implementation&);
Failures check_refusals(const Implementation&);

}  // namespace fa::suite
