#pragma once
/// @file
/// The element types an attention problem can have, at run time (DType) and at compile time.

#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>

#include "common/half.h"

namespace fa {

/// Element type of Q, K, V and O. Sums and LSE are fp32 whatever it is.
enum class DType { f32, f16, bf16 };

/// Bytes of one element.
constexpr std::size_t size_of(DType dtype) {
    return dtype == DType::f32 ? 4 : 2;
}

/// Unit roundoff: the largest relative error of one rounding, 2^−24, 2^−11 or 2^−8.
constexpr double roundoff(DType dtype) {
    switch (dtype) {
        case DType::f16: return 0x1p-11;
        case DType::bf16: return 0x1p-8;
        case DType::f32: break;
    }
    return 0x1p-24;
}

/// "fp32", "fp16" or "bf16".
constexpr std::string_view name_of(DType dtype) {
    switch (dtype) {
        case DType::f32: return "fp32";
        case DType::f16: return "fp16";
        case DType::bf16: return "bf16";
    }
    return "?";
}

/// The inverse of name_of(); nothing if `name` is none of the three.
constexpr std::optional<DType> dtype_from_name(std::string_view name) {
    for (DType dtype : {DType::f32, DType::f16, DType::bf16})
        if (name == name_of(dtype)) return dtype;
    return std::nullopt;
}

/// The DType of a C++ element type: float, Float16 or BFloat16.
template <class T>
constexpr DType dtype_of() {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, Float16> ||
                  std::is_same_v<T, BFloat16>);
    if constexpr (std::is_same_v<T, float>)
        return DType::f32;
    else if constexpr (std::is_same_v<T, Float16>)
        return DType::f16;
    else
        return DType::bf16;
}

/// Calls `function` with a value of the C++ type that `dtype` names, so that a template can be
/// chosen at run time: `with_element_type(dtype, [&](auto tag) { run<decltype(tag)>(); })`.
template <class Function>
decltype(auto) with_element_type(DType dtype, Function&& function) {
    switch (dtype) {
        case DType::f16: return function(Float16{});
        case DType::bf16: return function(BFloat16{});
        case DType::f32: break;
    }
    return function(float{});
}

}  // namespace fa
