#pragma once
/// @file
/// fp32 arrays whose values are those of a 16-bit type: how this chapter computes "in bf16".

#include <algorithm>
#include <span>

#include "common/dtype.h"

namespace fa {

/// Rounds each value to the nearest one that `dtype` has, ties to even; fp32 leaves all as they
/// are. A network in bf16 keeps its sums in fp32 and rounds what it stores. With this after each
/// operation ours does the same, in the same buffers.
inline void round_to(DType dtype, std::span<float> values) {
    if (dtype == DType::f32) return;
    with_element_type(dtype, [&](auto tag) {
        using T = decltype(tag);
        for (float& value : values) value = static_cast<float>(static_cast<T>(value));
    });
}

/// Converts fp32 values to a 16-bit type or back.
template <class From, class To>
void convert(std::span<const From> from, To* to) {
    std::transform(from.begin(), from.end(), to,
                   [](From x) { return static_cast<To>(static_cast<float>(x)); });
}

}  // namespace fa
