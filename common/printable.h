#pragma once
/// @file
/// Text from a file or a network, made fit for a terminal.

#include <string>
#include <string_view>

namespace fa {

/// `text` in double quotes, on one line and of bounded length, whatever it holds: control
/// characters, quotes, backslashes and bytes above 126 appear as `\xHH`, and after 80 bytes "…"
/// follows. A file may name its tensors as it likes; it must not be able to write on the reader's
/// terminal.
std::string printable(std::string_view text);

/// Text of any length with its lines and letters as they are; what could act on a terminal appears
/// as `\xHH`: control characters of one byte (but for line ends and tabs) or two (U+0080 to
/// U+009F), and bytes that are not UTF-8.
std::string printable_lines(std::string_view text);

}  // namespace fa
