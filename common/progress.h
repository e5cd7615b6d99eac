#pragma once
/// @file
/// A line on stderr that says how far long work has come; silent when stderr is not a terminal.

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace fa {

/// Shows "label  37 % (24/64)  12 s left", at most ten times a second, and clears the line at the
/// end.
class Progress {
  public:
    /// Starts the clock. `total` is the number of steps that advance() will be told of.
    Progress(std::string label, std::int64_t total);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// Counts `steps` more as done. Any thread may call it.
    void advance(std::int64_t steps = 1);

  private:
    std::mutex mutex_;
    std::string label_;
    std::int64_t total_, done_ = 0;
    bool visible_;
    std::chrono::steady_clock::time_point start_, last_shown_;
};

}  // namespace fa
