#pragma once
/// @file
/// How tests look at bad input: what was said about it, and how much memory it took to say it.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>

namespace fa::testing {

/// The message of the exception that `action` throws; empty if it throws none.
template <class Action>
std::string refusal(Action&& action) {
    try {
        action();
    } catch (const std::exception& error) {
        return error.what();
    }
    return {};
}

/// One clear line: there is a message, it is short, and no byte of it can disturb a terminal.
inline bool one_line(const std::string& message) {
    if (message.empty() || message.size() > 600) return false;
    for (const char c : message)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
    return true;
}

/// True if the program is instrumented, so that its memory says nothing.
constexpr bool sanitized() {
#ifdef FA_SANITIZED
    return true;
#else
    return false;
#endif
}

/// Largest amount of memory in RAM, in bytes, of a child process that does nothing but `action`.
/// Exceptions are swallowed: the caller looks at them elsewhere.
template <class Action>
std::size_t peak_resident_bytes(Action&& action) {
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("cannot fork");
    if (child == 0) {
        refusal(action);
        ::_exit(0);
    }
    int status = 0;
    rusage usage{};
    if (::wait4(child, &status, 0, &usage) != child || status != 0)
        throw std::runtime_error("the child process failed");
    return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

}  // namespace fa::testing
