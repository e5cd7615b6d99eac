#pragma once
/// @file
/// Safetensors files put together by hand, right and wrong ones.

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace fa::testing {

/// `length` as the eight bytes at the start of a file.
inline std::string length_bytes(std::uint64_t length) {
    std::string bytes(sizeof length, '\0');
    std::memcpy(bytes.data(), &length, sizeof length);
    return bytes;
}

/// A file of this header and `data` after it.
inline std::string safetensors(std::string_view header, std::string_view data) {
    return length_bytes(header.size()).append(header).append(data);
}

/// The bytes of `text`, as the readers take them.
inline std::span<const std::byte> as_bytes(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace fa::testing
