#pragma once
/// @file
/// Text from a file, made fit for an error message.

#include <string>
#include <string_view>

namespace fa {

/// `text` in double quotes, on one line and of bounded length, whatever it holds: control
/// characters, quotes, backslashes and bytes above 126 appear as `\xHH`, and after 80 bytes "…"
/// follows. A file may name its tensors as it likes; it must not be able to write on the reader's
/// terminal.
std::string printable(std::string_view text);

}  // namespace fa
